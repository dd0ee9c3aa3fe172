// Kafka's own producer, driven by lines on standard input, one command a line, fields separated by a space; each is
// answered with "ok" or "error …". Run from its source: java -cp 'libs/*' Produce.java host:port
//
//   send TOPIC PARTITION CODEC FILE       each line of the file is a value; waits until all are acknowledged
//   keyed TOPIC PARTITION KEY VALUE       one record, from an idempotent producer of its own
//   begin ID                              begins a transaction of the producer ID
//   add ID TOPIC PARTITION FILE           sends the file's lines within it
//   commit ID | abort ID                  ends it

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Produce {
  private static final Map<String, KafkaProducer<String, String>> transactional = new HashMap<>();
  private static String brokers;

  public static void main(String[] args) throws Exception {
    brokers = args[0];
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    System.out.println("ready");
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        run(line.split(" ", 5));
        System.out.println("ok");
      } catch (Exception error) {
        System.out.println("error " + error);
      }
    }
    System.exit(0);
  }

  private static void run(String[] fields) throws Exception {
    switch (fields[0]) {
      case "send":
        try (KafkaProducer<String, String> producer = producer(Map.of("compression.type", fields[3]))) {
          sendFile(producer, fields[1], Integer.parseInt(fields[2]), fields[4]);
        }
        break;
      case "keyed":
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
          int partition = Integer.parseInt(fields[2]);
          producer.send(new ProducerRecord<>(fields[1], partition, fields[3], fields[4])).get();
        }
        break;
      case "begin":
        if (!transactional.containsKey(fields[1])) {
          KafkaProducer<String, String> producer = producer(Map.of("transactional.id", fields[1]));
          producer.initTransactions();
          transactional.put(fields[1], producer);
        }
        transactional.get(fields[1]).beginTransaction();
        break;
      case "add":
        sendFile(transactional.get(fields[1]), fields[2], Integer.parseInt(fields[3]), fields[4]);
        break;
      case "commit":
        transactional.get(fields[1]).commitTransaction();
        break;
      case "abort":
        transactional.get(fields[1]).abortTransaction();
        break;
      default:
        throw new IllegalArgumentException(fields[0]);
    }
  }

  private static KafkaProducer<String, String> producer(Map<String, String> settings) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", brokers);
    properties.put("key.serializer", StringSerializer.class.getName());
    properties.put("value.serializer", StringSerializer.class.getName());
    // Batches of many records, as under load.
    properties.put("linger.ms", "20");
    properties.put("batch.size", "200000");
    properties.putAll(settings);
    return new KafkaProducer<>(properties);
  }

  private static void sendFile(KafkaProducer<String, String> producer, String topic, int partition, String file)
      throws Exception {
    List<Future<?>> sent = new ArrayList<>();
    for (String value : Files.readAllLines(Path.of(file))) {
      sent.add(producer.send(new ProducerRecord<>(topic, partition, null, value)));
    }
    producer.flush();
    for (Future<?> acknowledged : sent) acknowledged.get();
  }
}
