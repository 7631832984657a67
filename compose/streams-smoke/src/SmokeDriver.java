import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.tests.SmokeTestDriver;

/**
 * The driver of Kafka's StreamsSmokeTest with a shorter load: `StreamsSmokeTest run` generates for 90
 * seconds.
 *
 * <p>Arguments: the bootstrap servers, the number of keys, the records of each key, and the seconds of
 * the load. The generator and the verification are Kafka's own; the verification prints its result.
 */
public final class SmokeDriver {
    private SmokeDriver() {}

    public static void main(String[] args) throws Exception {
        int keys = Integer.parseInt(args[1]);
        int records = Integer.parseInt(args[2]);
        Duration load = Duration.ofSeconds(Long.parseLong(args[3]));
        System.out.println("urteil: generates");
        Map<String, Set<Integer>> inputs = SmokeTestDriver.generate(args[0], keys, records, load);
        verify(args[0], inputs, records);
        System.out.println("urteil: verified");
    }

    /** Since 4.1 `verify` has a last argument: whether the clients process exactly once. */
    private static void verify(String servers, Map<String, Set<Integer>> inputs, int records)
            throws Exception {
        Object[] arguments = {servers, inputs, records, true};
        for (Method method : SmokeTestDriver.class.getMethods()) {
            if (method.getName().equals("verify")) {
                method.invoke(null, Arrays.copyOf(arguments, method.getParameterCount()));
                return;
            }
        }
        throw new NoSuchMethodException("SmokeTestDriver.verify");
    }
}
