package urteil.connect;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.file.FileStreamSinkConnector;
import org.apache.kafka.connect.file.FileStreamSinkTask;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * A seeded bug: Kafka's file sink, which writes records late and lets their offsets be committed
 * before. A worker that is killed in between loses them.
 */
public final class EarlyCommitSink extends FileStreamSinkConnector {
    private static final long DELAY_NS = 10_000_000_000L;

    @Override
    public Class<? extends Task> taskClass() {
        return Writer.class;
    }

    /** Holds records back for a while. */
    public static final class Writer extends FileStreamSinkTask {
        private final List<SinkRecord> held = new ArrayList<>();
        private long since = System.nanoTime();

        @Override
        public void put(Collection<SinkRecord> records) {
            held.addAll(records);
            if (System.nanoTime() - since > DELAY_NS) {
                write();
            }
        }

        @Override
        public void stop() {
            write();
            super.stop();
        }

        private void write() {
            super.put(held);
            held.clear();
            since = System.nanoTime();
        }
    }
}
