/**
 * `npm run shippers`: real log shippers, with the configurations of deploy/shippers, from a file into a
 * running Logring, through both ways in; what was sent, applied and how long it took. Programs that are not
 * there are said to be left out; RSYSLOGD and SYSLOG_NG name them with their options where they are not
 * installed in the ordinary places.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createTraffic } from '../../bench/generator/traffic.js';
import { createLedTopics } from '../../bench/led-topics.js';
import { quietKafka } from '../../bench/quiet-kafka.js';
import { readMetrics } from '../../bench/service-metrics.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';

const ENTRY_COUNT = Number(process.argv[2] ?? 20_000);
const DEADLINE_MS = 120_000;
const TOPIC = 'cloudflare.logs.prod';

interface Shipper {
  readonly name: string;
  readonly way: 'HTTP' | 'Kafka';
  /** Of deploy/shippers; null: it is all in the command. */
  readonly configuration: string | null;
  /** The program, asked for its version where it needs no shell. */
  readonly program: readonly string[];
  readonly start: (files: Files) => { readonly command: readonly string[]; readonly input?: string };
}

interface Files {
  readonly directory: string;
  readonly entries: string;
  readonly configuration: string;
  readonly brokers: string;
}

const RSYSLOGD = (process.env.RSYSLOGD ?? 'rsyslogd').split(' ');
const SYSLOG_NG = (process.env.SYSLOG_NG ?? 'syslog-ng').split(' ');

const rsyslog: Shipper['start'] = ({ directory, configuration }) => ({
  command: [...RSYSLOGD, '-n', '-f', configuration, '-i', join(directory, 'pid')],
});
const syslogNg: Shipper['start'] = ({ directory, configuration }) => ({
  command: [
    ...SYSLOG_NG,
    ...['--foreground', '--no-caps', '-f', configuration, '-R', join(directory, 'persist')],
    ...['-p', join(directory, 'pid'), '-c', join(directory, 'control')],
  ],
});

const SHIPPERS: readonly Shipper[] = [
  {
    name: 'rsyslog, omprog',
    way: 'HTTP',
    configuration: 'rsyslog-http.conf',
    program: RSYSLOGD,
    start: rsyslog,
  },
  {
    name: 'syslog-ng, http()',
    way: 'HTTP',
    configuration: 'syslog-ng-http.conf',
    program: SYSLOG_NG,
    start: syslogNg,
  },
  {
    name: 'rsyslog, omkafka',
    way: 'Kafka',
    configuration: 'rsyslog-kafka.conf',
    program: RSYSLOGD,
    start: rsyslog,
  },
  {
    name: 'syslog-ng, kafka-c()',
    way: 'Kafka',
    configuration: 'syslog-ng-kafka.conf',
    program: SYSLOG_NG,
    start: syslogNg,
  },
  {
    name: 'kcat',
    way: 'Kafka',
    configuration: null,
    program: ['kcat'],
    start: ({ brokers, entries }) => ({
      command: ['kcat', '-P', '-b', brokers, '-t', TOPIC, '-z', 'lz4', '-l', entries],
    }),
  },
];

/** The configuration as it ships, with this run's addresses, key and files in it. */
function configure(name: string, directory: string, url: string, brokers: string): string {
  const key = join(directory, 'api-key');
  writeFileSync(key, TEST_KEY);
  const text = readFileSync(join('deploy/shippers', name), 'utf8');
  const changes: [string, string][] = [
    ['/var/log/platform/edge.ndjson', join(directory, 'edge.ndjson')],
    ['/var/spool/rsyslog/logring-failed', join(directory, 'failed')],
    ['/usr/local/bin/logring-post', resolve('deploy/shippers/logring-post')],
    ['/etc/logring/api-key', key],
    ['http://127.0.0.1:4000', url],
    ['choose-a-key', TEST_KEY],
    ['127.0.0.1:9092', brokers],
  ];
  const path = join(directory, name);
  writeFileSync(
    path,
    changes.reduce((changed, [from, to]) => changed.replaceAll(from, to), text),
  );
  return path;
}

async function applied(service: ChildService): Promise<{ applied: number; dead: number }> {
  const metrics = await readMetrics(service);
  return {
    applied: metrics.sum('logring_entries_applied_total'),
    dead: metrics.sum('logring_dead_letters_total'),
  };
}

async function ship(shipper: Shipper, service: ChildService, brokers: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-shipper-'));
  mkdirSync(directory, { recursive: true });
  const entries = join(directory, 'edge.ndjson');
  const traffic = createTraffic({ seed: 7, projectCount: 20 });
  const lines = Array.from({ length: ENTRY_COUNT }, () => traffic.edge(wallClockUs()));
  writeFileSync(entries, `${lines.join('\n')}\n`);
  const configuration =
    shipper.configuration === null ? '' : configure(shipper.configuration, directory, service.url, brokers);
  const before = await applied(service);
  const startUs = monotonicUs();
  const { command } = shipper.start({ directory, entries, configuration, brokers });
  const child: ChildProcess = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout?.on('data', (piece) => {
    output += String(piece);
  });
  child.stderr?.on('data', (piece) => {
    output += String(piece);
  });
  let now = before;
  try {
    await eventually(
      async () => {
        now = await applied(service);
        return now.applied + now.dead >= before.applied + before.dead + ENTRY_COUNT;
      },
      () => output.slice(-2_000),
      DEADLINE_MS,
    );
  } finally {
    child.kill('SIGTERM');
    await new Promise((done) => (child.exitCode === null ? child.once('exit', done) : done(null)));
  }
  const seconds = (monotonicUs() - startUs) / 1e6;
  const dead = now.dead - before.dead;
  rmSync(directory, { recursive: true, force: true });
  return `${shipper.name} | ${shipper.way} | ${ENTRY_COUNT} | ${now.applied - before.applied} | ${dead} | ${seconds.toFixed(1)}`;
}

/** One Logring for all shippers of a way in. */
async function shipAll(way: Shipper['way']): Promise<void> {
  const shippers = SHIPPERS.filter((shipper) => {
    if (shipper.way !== way) return false;
    const isThere = spawnSync(shipper.program[0], ['-v']).error === undefined;
    if (!isThere) process.stdout.write(`${shipper.name}: left out, ${shipper.program[0]} is not installed\n`);
    return isThere;
  });
  if (shippers.length === 0) return;
  const directory = mkdtempSync(join(tmpdir(), 'logring-shippers-'));
  let broker: Broker | null = null;
  let service: ChildService | null = null;
  try {
    const settings: Record<string, string> = { LOGRING_DATA_DIR: directory };
    if (way === 'Kafka') {
      broker = await startBroker({ version: '4.1' });
      const admin = quietKafka({ brokers: broker.brokers }).admin();
      await admin.connect();
      await createLedTopics(
        admin,
        [TOPIC, 'deno-relay-logs'].map((topic) => ({ topic, numPartitions: 2, replicationFactor: 1 })),
      );
      await admin.disconnect();
      settings.LOGRING_KAFKA_BROKERS = broker.brokers.join(',');
    }
    service = await startChildService(settings);
    for (const shipper of shippers)
      process.stdout.write(`${await ship(shipper, service, broker?.brokers.join(',') ?? '')}\n`);
  } finally {
    await service?.kill('SIGTERM');
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

process.stdout.write('shipper | way in | sent | applied | dead letters | seconds\n');
await shipAll('HTTP');
await shipAll('Kafka');
process.exit(0);
