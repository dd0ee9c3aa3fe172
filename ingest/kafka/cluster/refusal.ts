/**
 * What the brokers refuse us, or we them, as sentences that tell an operator what to change. All of it is
 * waited out.
 */

import type { KafkaConnection } from './client.js';

/** Rights on these topics are missing. */
export class TopicsRefusedError extends Error {
  override name = 'TopicsRefusedError';
  readonly topics: readonly string[];

  constructor(topics: readonly string[]) {
    super(`the brokers refuse this user the topics ${topics.join(', ')}`);
    this.topics = topics;
  }
}

/** What was tried when the error came. */
export interface Attempt {
  readonly connection: KafkaConnection;
  readonly topics: readonly string[];
  /** null where no group is concerned. */
  readonly groupId: string | null;
  /** Kafka's names of the rights that it takes. */
  readonly operations: readonly ('Read' | 'Write' | 'Create')[];
}

const UNTRUSTED_CODES = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
]);

/**
 * One sentence for an error that stays until an operator acts; null for any other, such as brokers that are
 * down.
 */
export function refusalOf(error: unknown, attempt: Attempt): string | null {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; depth++) {
    const sentence = sentenceOf(cause, attempt);
    if (sentence !== null) return sentence;
    const { errors } = cause as { errors?: unknown };
    cause = Array.isArray(errors) && errors.length > 0 ? errors[0] : cause.cause;
  }
  return null;
}

function sentenceOf(error: Error, attempt: Attempt): string | null {
  const { type, code } = error as { type?: unknown; code?: unknown };
  if (error instanceof TopicsRefusedError) return missingRight('topic', error.topics, attempt);
  if (error.name === 'KafkaJSSASLAuthenticationError') return refusedUser(attempt.connection);
  switch (type) {
    case 'TOPIC_AUTHORIZATION_FAILED':
    case 'CLUSTER_AUTHORIZATION_FAILED':
      return missingRight('topic', attempt.topics, attempt);
    case 'UNSUPPORTED_SASL_MECHANISM':
      return refusedMechanism(attempt.connection);
    case 'GROUP_AUTHORIZATION_FAILED':
      return missingRight('group', [attempt.groupId ?? ''], attempt);
  }
  return typeof code === 'string' ? refusedCertificate(code, error.message, attempt.connection) : null;
}

function missingRight(
  kind: 'topic' | 'group',
  names: readonly string[],
  { connection, operations }: Attempt,
): string {
  const user = connection.sasl?.username ?? null;
  const who = user === null ? "the client certificate's owner" : `the user ${user}`;
  const principal = user === null ? "'User:<its subject>'" : `'User:${user}'`;
  const flags = operations.map((operation) => `--operation ${operation}`).join(' ');
  const resources = names.map((name) => `--${kind} '${name}'`).join(' ');
  return `the Kafka brokers refuse ${who} the right ${operations.join(' and ')} on the ${kind} ${names.join(' and ')}: kafka-acls --add --allow-principal ${principal} ${flags} ${resources}`;
}

function refusedMechanism({ sasl }: KafkaConnection): string {
  return `the Kafka brokers do not offer SASL ${sasl?.mechanism} on this port: set LOGRING_KAFKA_SASL_MECHANISM to a mechanism that they do`;
}

function refusedUser({ sasl }: KafkaConnection): string {
  return `the Kafka brokers refuse the user ${sasl?.username} or its password (SASL ${sasl?.mechanism}): check LOGRING_KAFKA_SASL_USERNAME, LOGRING_KAFKA_SASL_PASSWORD and LOGRING_KAFKA_SASL_MECHANISM`;
}

function refusedCertificate(code: string, message: string, { tls }: KafkaConnection): string | null {
  if (UNTRUSTED_CODES.has(code)) {
    const known = tls?.ca === undefined ? "the system's authorities" : 'LOGRING_KAFKA_SSL_CA';
    return `the Kafka brokers' certificate was not issued by any authority among ${known} (${code}): set LOGRING_KAFKA_SSL_CA to the certificate of the authority that issued it`;
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the Kafka brokers' certificate is for other names than LOGRING_KAFKA_BROKERS or the brokers' advertised.listeners give: ${message}`;
  if (code === 'CERT_HAS_EXPIRED') return "the Kafka brokers' certificate has expired: they need a new one";
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_UNKNOWN/.test(code))
    return `the Kafka brokers do not accept our client certificate (${code}): set LOGRING_KAFKA_SSL_CERT and LOGRING_KAFKA_SSL_KEY to one of an authority that they trust`;
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/.test(code))
    return 'the Kafka brokers do not speak TLS on this port: LOGRING_KAFKA_BROKERS names another port than LOGRING_KAFKA_SSL needs';
  if (code === 'ECONNRESET' && message.includes('before secure TLS'))
    return 'the Kafka brokers ended the TLS handshake: either they do not speak TLS on this port, or they ask for a client certificate (LOGRING_KAFKA_SSL_CERT and LOGRING_KAFKA_SSL_KEY)';
  return null;
}
