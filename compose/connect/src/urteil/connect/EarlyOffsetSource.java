package urteil.connect;

import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.file.FileStreamSourceConnector;
import org.apache.kafka.connect.file.FileStreamSourceTask;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * A seeded bug: Kafka's file source, whose records carry the position behind the lines that it has
 * read ahead. A worker that is killed skips those lines after its restart.
 */
public final class EarlyOffsetSource extends FileStreamSourceConnector {
    @Override
    public Class<? extends Task> taskClass() {
        return Reader.class;
    }

    /** Returns a batch only when it has read the next one, with the position of the next one. */
    public static final class Reader extends FileStreamSourceTask {
        private List<SourceRecord> ahead = new ArrayList<>();

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> next = super.poll();
            if (next == null) {
                next = new ArrayList<>();
            }
            List<SourceRecord> ready = new ArrayList<>();
            List<SourceRecord> last = next.isEmpty() ? ahead : next;
            for (SourceRecord line : ahead) {
                ready.add(new SourceRecord(
                        line.sourcePartition(), last.get(last.size() - 1).sourceOffset(),
                        line.topic(), line.kafkaPartition(), line.keySchema(), line.key(),
                        line.valueSchema(), line.value(), line.timestamp()));
            }
            ahead = next;
            return ready.isEmpty() ? null : ready;
        }
    }
}
