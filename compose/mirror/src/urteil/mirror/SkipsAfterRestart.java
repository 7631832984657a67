package urteil.mirror;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** A seeded bug: a task that resumes a partition loses the last record of its first poll. */
public class SkipsAfterRestart implements ConsumerInterceptor<byte[], byte[]> {
    private final Set<TopicPartition> begun = new HashSet<>();

    @Override
    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> polled) {
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> kept = new HashMap<>();
        for (TopicPartition place : polled.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> records = polled.records(place);
            boolean resumes = begun.add(place) && records.get(0).offset() > 0;
            kept.put(place, resumes ? records.subList(0, records.size() - 1) : records);
        }
        return new ConsumerRecords<>(kept);
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {}

    @Override
    public void close() {}

    @Override
    public void configure(Map<String, ?> configs) {}
}
