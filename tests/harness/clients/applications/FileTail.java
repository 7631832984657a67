import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.file.FileStreamSourceTask;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** Prints how many of a file's lines Kafka's file source returns while the file does not grow. */
final class FileTail {
    private static final int IDLE_POLLS = 2;

    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[0]);
        int lines = Integer.parseInt(args[1]);
        Files.writeString(file, ("x".repeat(159) + "\n").repeat(lines));
        FileStreamSourceTask task = new FileStreamSourceTask();
        OffsetStorageReader offsets = stub(OffsetStorageReader.class, null);
        task.initialize(stub(SourceTaskContext.class, offsets));
        task.start(Map.of("file", file.toString(), "topic", "t", "batch.size", args[2]));
        int read = 0;
        for (int idle = 0; read < lines && idle < IDLE_POLLS; ) {
            List<SourceRecord> batch = task.poll();
            idle = batch == null ? idle + 1 : 0;
            read += batch == null ? 0 : batch.size();
        }
        task.stop();
        System.out.println("read " + read);
    }

    private static <T> T stub(Class<T> type, Object answer) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> answer));
    }
}
