import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.cluster.EndPoint;
import kafka.metrics.KafkaMetricsReporter;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.replica.ReplicaSelector;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Apache Kafka's own reading of property files, thousands in one JVM.
 *
 * `keys` prints every setting: name, type, default, validator, internal. Otherwise each line of
 * standard input is a path, and each line of the answer has blank-separated fields in Base64:
 * `ok` or the error, the number of raw properties, the raw properties (key, value), the values.
 */
public final class PropertyProbe {
    public static void main(String[] args) throws Exception {
        if (args.length > 0 && args[0].equals("keys")) {
            keys();
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String path = in.readLine(); path != null; path = in.readLine()) {
            System.out.println(String.join(" ", answer(path)));
            System.out.flush();
        }
    }

    private static void keys() {
        for (ConfigDef.ConfigKey key : AbstractKafkaConfig.CONFIG_DEF.configKeys().values()) {
            Object value = key.hasDefault() ? key.defaultValue : null;
            System.out.println(String.join("|", key.name, key.type.toString().toLowerCase(),
                value == null ? "null" : ConfigDef.convertToString(value, key.type),
                String.valueOf(key.validator), String.valueOf(key.internalConfig)));
        }
    }

    private static List<String> answer(String path) {
        Map<String, String> raw = new TreeMap<>();
        Map<String, String> values = new TreeMap<>();
        String said = "ok";
        try {
            Properties properties = Utils.loadProps(path);
            properties.forEach((key, value) -> raw.put((String) key, (String) value));
            values.putAll(start(properties));
        } catch (Throwable error) {
            said = error.getClass().getSimpleName() + ": " + error.getMessage();
        }
        List<String> fields = new ArrayList<>();
        fields.add(encoded(said));
        fields.add(encoded(String.valueOf(raw.size())));
        for (Map<String, String> map : List.of(raw, values)) {
            map.forEach((key, value) -> Collections.addAll(fields, encoded(key), encoded(value)));
        }
        return fields;
    }

    /** What a broker checks before it opens anything, in its order. */
    private static Map<String, String> start(Properties properties) throws Exception {
        KafkaConfig config = KafkaConfig.fromProps(properties, false);
        new LogConfig(config.extractLogConfigMap());
        config.createNewAuthorizer();
        config.getConfiguredInstance("client.quota.callback.class", ClientQuotaCallback.class);
        config.getConfiguredInstance("create.topic.policy.class.name", CreateTopicPolicy.class);
        config.getConfiguredInstance("alter.config.policy.class.name", AlterConfigPolicy.class);
        config.getConfiguredInstances("metric.reporters", MetricsReporter.class);
        for (String name : csv((String) config.originals().get("kafka.metrics.reporters"))) {
            Utils.newInstance(name, KafkaMetricsReporter.class);
        }
        String selector = config.getString("replica.selector.class");
        if (selector != null) {
            Utils.newInstance(selector, ReplicaSelector.class);
        }
        Map<String, String> values = new HashMap<>();
        config.values().forEach((key, value) -> {
            ConfigDef.ConfigKey known = AbstractKafkaConfig.CONFIG_DEF.configKeys().get(key);
            if (value != null) {
                values.put(key, value instanceof org.apache.kafka.common.config.types.Password password
                    ? password.value() : ConfigDef.convertToString(value, known.type));
            }
        });
        values.put("(listeners)", addresses(config.listeners()));
        values.put("(advertised)", addresses(config.effectiveAdvertisedBrokerListeners()));
        values.put("(inter.broker)", config.interBrokerListenerName().value());
        return values;
    }

    private static String addresses(scala.collection.Seq<EndPoint> listeners) {
        List<String> found = new ArrayList<>();
        for (scala.collection.Iterator<EndPoint> all = listeners.iterator(); all.hasNext(); ) {
            found.add(all.next().connectionString());
        }
        return String.join(",", found);
    }

    private static List<String> csv(String text) {
        return org.apache.kafka.server.util.Csv.parseCsvList(text);
    }

    private static String encoded(String text) {
        byte[] bytes = String.valueOf(text).getBytes(StandardCharsets.UTF_8);
        return Base64.getEncoder().encodeToString(bytes).isEmpty() ? "-" : Base64.getEncoder().encodeToString(bytes);
    }
}
