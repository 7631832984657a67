import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaServer;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/**
 * Brokers of Apache Kafka in one JVM, each started from its property file.
 *
 * Each line of standard input is `start FILE` or `stop FILE`. The answer is one line: `ok` with the
 * broker's id, or the error that ended the start, without its line breaks.
 */
public final class StartProbe {
    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Exit.setExitProcedure(StartProbe::ended);
        Exit.setHaltProcedure(StartProbe::ended);
        Map<String, KafkaServer> servers = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 2);
            answers.println(answer(words[0], words[1], servers).replaceAll("\\s+", " "));
            answers.flush();
        }
        System.exit(0);
    }

    private static void ended(int code, String message) {
        throw new IllegalStateException("ended with " + code + ": " + message);
    }

    private static String answer(String verb, String path, Map<String, KafkaServer> servers) {
        try {
            if (verb.equals("stop")) {
                servers.remove(path).shutdown();
                return "ok";
            }
            Properties properties = Utils.loadProps(path);
            KafkaServer server = new KafkaServer(
                KafkaConfig.fromProps(properties), Time.SYSTEM, scala.Option.empty(), false);
            server.startup();
            servers.put(path, server);
            return "ok " + server.config().brokerId();
        } catch (Throwable error) {
            return error.getClass().getSimpleName() + ": " + error.getMessage();
        }
    }
}
