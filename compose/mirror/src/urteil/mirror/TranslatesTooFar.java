package urteil.mirror;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AlterConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.AlterConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.ForwardingAdmin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** A seeded bug: a group's offset becomes the end of the mirror. */
public class TranslatesTooFar extends ForwardingAdmin {
    public TranslatesTooFar(Map<String, Object> configs) {
        super(configs);
    }

    @Override
    public AlterConsumerGroupOffsetsResult alterConsumerGroupOffsets(
            String group,
            Map<TopicPartition, OffsetAndMetadata> offsets,
            AlterConsumerGroupOffsetsOptions options) {
        Map<TopicPartition, OffsetSpec> request =
                offsets.keySet().stream()
                        .collect(Collectors.toMap(place -> place, place -> OffsetSpec.latest()));
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        try {
            listOffsets(request).all().get()
                    .forEach((place, end) -> ends.put(place, new OffsetAndMetadata(end.offset())));
        } catch (InterruptedException | ExecutionException failure) {
            throw new KafkaException(failure);
        }
        return super.alterConsumerGroupOffsets(group, ends, options);
    }
}
