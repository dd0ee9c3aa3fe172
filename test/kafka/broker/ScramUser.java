import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;

/** Makes a SCRAM-SHA-512 user, or gives it another password: brokers, user, password. */
public class ScramUser {
  public static void main(String[] arguments) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
      var info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096);
      var upsertion = new UserScramCredentialUpsertion(arguments[1], info, arguments[2]);
      admin.alterUserScramCredentials(List.of(upsertion)).all().get();
    }
  }
}
