/** `logring import`: its arguments, the service that it imports into, and what it says at the end. */

import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { ConfigError } from '../config/config-error.js';
import { type Config, readConfig } from '../config.js';
import { endText } from '../end-text.js';
import { type Service, startService } from '../service/service.js';
import { createLog } from '../service-log.js';
import { DirectoryInUseError } from '../store/directory/directory-lock.js';
import { monotonicUs, wallClockUs } from '../system-clock.js';
import { ImportClient, type ImportClientOptions } from './import-client.js';
import { ImportError, ImportInterrupted } from './import-error.js';
import { type FileReport, importFile } from './importer.js';
import { PATIENCE_SECONDS } from './limits.js';
import { grouped, Progress, rejectedCount } from './progress.js';
import { SourceFile, STANDARD_INPUT } from './unpacked-bytes.js';

const HELP = `Usage: logring import [--url URL] [--key KEY] [--topic NAME] [--name NAME] [--patience SECONDS] [FILE…]

Takes past entries, one JSON object a line, plain or packed by gzip or zstd, from files or (-, or no file) standard
input. Interrupted at any moment, it goes on where it stood when the same command is run again with the same files:
no entry is lost or counts twice, a file that is there already adds nothing, and one that has grown what is new. Files
are told apart by their first lines.

  --url URL           the running service; without it the entries go into the store at LOGRING_DATA_DIR, which no
                      running service may hold
  --key KEY           a key that may post logs [the first unlimited one of LOGRING_INGEST_KEYS, else LOGRING_API_KEYS]
  --topic NAME        the log that the entries belong to [LOGRING_EDGE_TOPIC]
  --name NAME         tells the import from others instead of its first line; with one file
  --patience SECONDS  how long a service that can't be reached is tried again [${PATIENCE_SECONDS}]

Exit codes: 0 everything was read and taken; 1 it ended before its end; 2 wrong arguments or configuration;
3 everything was read, and some entries were rejected (they are among the dead letters), or the last line breaks off.
`;

const REJECTED_EXIT_CODE = 3;
const INTERRUPTED_EXIT_CODE = 130;

interface ImportOrder {
  /** null: into the store of the configuration. */
  readonly url: string | null;
  readonly key: string | null;
  readonly topic: string;
  /** null: by its first line. */
  readonly name: string | null;
  readonly patienceMs: number;
  readonly files: readonly string[];
}

/**
 * The exit code. What an operator can mend is thrown as an error whose message says how, or told on stderr.
 */
export async function runImport(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  version: string,
): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return 0;
  }
  const config = readConfig(environment);
  const order = parseOrder(args, config);
  const interruption = new AbortController();
  const interrupt = () => {
    if (interruption.signal.aborted) process.exit(INTERRUPTED_EXIT_CODE);
    interruption.abort();
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  const target = order.url === null ? await ownService(config, version) : null;
  try {
    const connection = {
      url: target?.service.url ?? order.url ?? '',
      key: target?.key ?? order.key ?? configuredKey(config),
      signal: interruption.signal,
    };
    return await importAll(order, connection);
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    process.stderr.write(`logring import: ${error.message}\n`);
    return error instanceof ImportInterrupted ? INTERRUPTED_EXIT_CODE : 1;
  } finally {
    await target?.service.stop();
  }
}

function parseOrder(args: readonly string[], config: Config): ImportOrder {
  const problems: string[] = [];
  const { values, positionals } = parsedArgs(args);
  const url = values.url ?? null;
  if (url !== null && !/^https?:\/\/[^/]/.test(url))
    problems.push(`--url: must be such as http://127.0.0.1:4000, got ${JSON.stringify(url)}`);
  const patience = values.patience ?? String(PATIENCE_SECONDS);
  if (!/^\d{1,6}$/.test(patience)) problems.push('--patience: must be a whole number of seconds');
  const topic = values.topic ?? config.EDGE_TOPIC;
  if (url === null && topic !== config.EDGE_TOPIC && topic !== config.RELAY_TOPIC)
    problems.push(`--topic: must be ${config.EDGE_TOPIC} or ${config.RELAY_TOPIC}`);
  if (url === null && config.KAFKA_BROKERS !== undefined) {
    problems.push(
      `LOGRING_KAFKA_BROKERS: with Kafka nothing is imported here; publish the entries to the topic ${topic} instead`,
    );
  }
  if (positionals.filter((name) => name === STANDARD_INPUT).length > 1)
    problems.push('-: standard input can be read once');
  if (values.name !== undefined && positionals.length > 1) problems.push('--name: goes with one file');
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    url,
    key: values.key ?? null,
    topic,
    name: values.name ?? null,
    patienceMs: Number(patience) * 1000,
    files: positionals.length === 0 ? [STANDARD_INPUT] : positionals,
  };
}

function parsedArgs(args: readonly string[]) {
  const option = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { url: option, key: option, topic: option, name: option, patience: option },
    });
  } catch (error) {
    throw new ConfigError([`${(error as Error).message} (see logring import --help)`]);
  }
}

function configuredKey(config: Config): string {
  const unlimited = (config.INGEST_KEYS ?? config.API_KEYS ?? []).find(({ projects }) => projects === null);
  if (unlimited === undefined) {
    throw new ConfigError([
      '--key: is needed with --url, or LOGRING_INGEST_KEYS or LOGRING_API_KEYS with a key that is not limited to projects',
    ]);
  }
  return unlimited.key;
}

/** The service itself on the idle store, where only this process knows port and key. */
async function ownService(config: Config, version: string): Promise<{ service: Service; key: string }> {
  const key = randomBytes(24).toString('base64url');
  const keys = [{ key, projects: null }];
  const { API_KEYS: _, INGEST_KEYS: __, ...files } = config.files;
  const { LOG_FORMAT, LOG_LEVEL } = config;
  const logger = await createLog({ LOG_FORMAT, LOG_LEVEL: LOG_LEVEL === 'info' ? 'warn' : LOG_LEVEL }, 2);
  const onFatal = (error: unknown): never => {
    logger.fatal({ err: error }, `the import ends: ${endText(error, config.DATA_DIR)}`);
    process.exit(1);
  };
  try {
    const service = await startService(
      { ...config, HOST: '127.0.0.1', PORT: 0, API_KEYS: keys, INGEST_KEYS: keys, files },
      { logger, clock: { nowUs: wallClockUs, monotonicUs }, version, onFatal, announceKey: () => undefined },
    );
    return { service, key };
  } catch (error) {
    if (!(error instanceof DirectoryInUseError)) throw error;
    throw new ImportError(`${error.message}; or import into it with --url`);
  }
}

type Connection = Pick<ImportClientOptions, 'url' | 'key' | 'signal'>;

async function importAll(order: ImportOrder, connection: Connection): Promise<number> {
  let left = 0;
  for (const name of order.files) {
    const file = new SourceFile(name);
    const report = await importNamed(file, order, connection);
    process.stdout.write(`${file.label}: ${reportText(report)}\n`);
    left += report.unfinishedBytes;
    if (report.state !== null) left += rejectedCount(report.state);
  }
  return left > 0 ? REJECTED_EXIT_CODE : 0;
}

async function importNamed(
  file: SourceFile,
  { topic, name, patienceMs }: ImportOrder,
  connection: Connection,
): Promise<FileReport> {
  const progress = new Progress(process.stderr, monotonicUs, file);
  const client = new ImportClient({
    ...connection,
    topic,
    patienceMs,
    monotonicUs,
    onWait: (why) => progress.waits(why),
  });
  let standing: FileReport['state'] = null;
  const interrupt = () => file.interrupt();
  connection.signal.addEventListener('abort', interrupt);
  try {
    return await importFile(file.unpacked(), name, client, (state) => {
      standing = state;
      progress.advanced(state);
    });
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    const Kind = error instanceof ImportInterrupted ? ImportInterrupted : ImportError;
    throw new Kind(`${file.label}: ${error.message}${standingText(standing)}`);
  } finally {
    connection.signal.removeEventListener('abort', interrupt);
    progress.end();
  }
}

function standingText(standing: FileReport['state']): string {
  if (standing === null) return '';
  return (
    `\n${grouped(standing.accepted)} of its entries stand (${grouped(standing.nextByte)} bytes unpacked); ` +
    'the same command goes on from there'
  );
}

function reportText(report: FileReport): string {
  const { unfinishedBytes } = report;
  return unfinishedBytes === 0
    ? takenText(report)
    : `${takenText(report)}; its last ${grouped(unfinishedBytes)} bytes are an entry that breaks off: the same command takes it once the rest is there`;
}

function takenText({ state, acceptedBefore }: FileReport): string {
  if (state === null) return 'nothing is in it';
  const reasons = Object.entries(state.rejectedByReason).map(
    ([reason, count]) => `${grouped(count)} ${reason}`,
  );
  const taken = `${grouped(state.accepted)} entries stand, ${grouped(state.accepted - acceptedBefore)} of them new`;
  return reasons.length === 0
    ? taken
    : `${taken}; ${grouped(rejectedCount(state))} rejected: ${reasons.join(', ')}`;
}
