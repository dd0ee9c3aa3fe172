/** Brokers run from Apache Kafka's own jars: Java processes, each on ports and a directory of its own. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Broker, BrokerOptions } from './broker.js';
import { brokerClassPath, cacheDirectory, type KafkaVersion } from './broker-jars.js';
import { freePort } from './free-port.js';
import { type BrokerPorts, loggingFile, propertiesFile, serverProperties } from './server-properties.js';

const run = promisify(execFile);

const FORMAT_TIMEOUT_MS = 240_000;
const START_TIMEOUT_MS = 240_000;
const STOP_TIMEOUT_MS = 60_000;
const READY_LINE = 'Kafka Server started';
const JAVA_OPTIONS = ['-Xms128m', '-Xmx256m', '-XX:+UseSerialGC'];
/** A start takes 3 to 4 s on two cores; this keeps it there. */
const QUICK_START = '-XX:TieredStopAtLevel=1';

/**
 * Java runs beside a reader of a pipe that only this process holds open: however this process ends, SIGKILL
 * included, the pipe closes, Java is killed and its directory, the first argument, removed unless that is
 * empty. The first line of output is Java's process id.
 */
const GUARDED_JAVA = `
directory=$1
shift
java "$@" 3<&- </dev/null &
pid=$!
echo "pid $pid"
{ cat <&3 >/dev/null; kill -9 $pid 2>/dev/null; [ -z "$directory" ] || rm -rf "$directory"; } &
guard=$!
wait $pid
code=$?
kill $guard 2>/dev/null
exit $code
`;

/** Starts a broker and resolves once it is ready for clients. */
export async function startJarBroker(options: BrokerOptions): Promise<Broker> {
  const [broker] = await startJarBrokers(options, 1);
  return broker;
}

/**
 * Starts the nodes of one cluster. Their data is kept in `home`, where it is found again by the next start,
 * or in directories that go with this process.
 */
export async function startJarBrokers(
  options: BrokerOptions,
  nodeCount: number,
  home: string | null = null,
): Promise<Broker[]> {
  const { version } = options;
  const classPath = await brokerClassPath(version);
  await formattedDirectory(version, classPath);
  const archive = classArchive(version);
  const javaOptions = [
    ...JAVA_OPTIONS,
    ...(options.isForLong === true ? [] : [QUICK_START]),
    ...(existsSync(archive) ? [`-XX:SharedArchiveFile=${archive}`] : []),
  ];
  const nodes: JarBroker[] = [];
  for (let id = 1; id <= nodeCount; id++) {
    const directory =
      home === null ? await mkdtemp(join(tmpdir(), 'logring-kafka-')) : join(home, `broker-${id}`);
    const ports = { client: await freePort(), controller: await freePort() };
    nodes.push(new JarBroker(version, classPath, javaOptions, directory, home !== null, ports));
  }
  const clusterId = randomBytes(16).toString('base64url');
  const controllers = nodes.map(({ ports }) => ports.controller);
  try {
    for (const node of nodes) await node.prepare(options, clusterId, controllers);
    // None of them is ready before most of them are there.
    await Promise.all(nodes.map((node) => node.launch()));
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()));
    throw error;
  }
  return nodes;
}

class JarBroker implements Broker {
  readonly brokers: string[];
  readonly canBeKilled = true;
  readonly ports: BrokerPorts;
  readonly #classPath: string;
  readonly #version: KafkaVersion;
  readonly #javaOptions: readonly string[];
  readonly #directory: string;
  readonly #isKept: boolean;
  #child: ChildProcess | null = null;
  #javaPid: number | null = null;

  constructor(
    version: KafkaVersion,
    classPath: string,
    javaOptions: readonly string[],
    directory: string,
    isKept: boolean,
    ports: BrokerPorts,
  ) {
    this.#version = version;
    this.#classPath = classPath;
    this.#javaOptions = javaOptions;
    this.#directory = directory;
    this.#isKept = isKept;
    this.brokers = [`127.0.0.1:${ports.client}`];
    this.ports = ports;
  }

  async prepare(options: BrokerOptions, clusterId: string, controllers: readonly number[]): Promise<void> {
    const data = join(this.#directory, 'data');
    const properties = serverProperties(this.ports, data, '127.0.0.1', options, controllers);
    if (!existsSync(data)) {
      await cp(await formattedDirectory(this.#version, this.#classPath), data, { recursive: true });
      const meta = join(data, 'meta.properties');
      const text = (await readFile(meta, 'utf8'))
        .replace(/^cluster\.id=.*$/m, `cluster.id=${clusterId}`)
        .replace(/^node\.id=.*$/m, `node.id=${properties['node.id']}`)
        .replace(/^directory\.id=.*$/m, `directory.id=${randomBytes(16).toString('base64url')}`);
      await writeFile(meta, text);
    }
    await writeFile(join(this.#directory, 'server.properties'), propertiesFile(properties));
    const logging = loggingFile(this.#version);
    await writeFile(join(this.#directory, logging.name), logging.text);
  }

  async launch(): Promise<void> {
    const logging = loggingFile(this.#version);
    const java = [...this.#javaOptions, `${logging.javaOption}${join(this.#directory, logging.name)}`];
    java.push('-cp', this.#classPath, 'kafka.Kafka', join(this.#directory, 'server.properties'));
    // A group of its own: Ctrl-C is for this process, which ends its brokers in its own order.
    const child = spawn('sh', ['-c', GUARDED_JAVA, 'sh', this.#isKept ? '' : this.#directory, ...java], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    let output = '';
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`the broker did not start:\n${output}`)),
        START_TIMEOUT_MS,
      );
      const read = (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-20_000);
        const pid = /^pid (\d+)$/m.exec(output);
        if (pid !== null) this.#javaPid = Number(pid[1]);
        if (!output.includes(READY_LINE)) return;
        clearTimeout(timer);
        resolve();
      };
      child.stdout!.on('data', read);
      child.stderr!.on('data', read);
      child.once('exit', (code) => {
        // Else what reads the pipe holds the child's output open, and so this process, after the last broker.
        child.stdio[3]?.destroy();
        clearTimeout(timer);
        reject(new Error(`the broker ended with ${code}:\n${output}`));
      });
    });
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.#javaPid !== null) process.kill(this.#javaPid, name);
  }

  restart(): Promise<void> {
    return this.restartWith(() => Promise.resolve());
  }

  async restartWith(change: (logDirectory: string) => Promise<void>): Promise<void> {
    await this.#end('SIGTERM');
    await change(join(this.#directory, 'data'));
    await this.launch();
  }

  async stop(): Promise<void> {
    await this.#end(this.#isKept ? 'SIGTERM' : 'SIGKILL');
    if (!this.#isKept) await rm(this.#directory, { recursive: true, force: true });
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    const timer = setTimeout(() => this.#signalJava('SIGKILL'), STOP_TIMEOUT_MS);
    this.#signalJava(signal);
    await ended;
    clearTimeout(timer);
    this.#javaPid = null;
  }

  #signalJava(signal: 'SIGTERM' | 'SIGKILL'): void {
    if (this.#javaPid !== null) process.kill(this.#javaPid, signal);
  }
}

/**
 * A formatted, empty log directory of the version, made once: formatting costs a second start of Java. Who has made it
 * archives the classes, too; others start without them meanwhile.
 */
async function formattedDirectory(version: KafkaVersion, classPath: string): Promise<string> {
  const formatted = join(cacheDirectory(version), 'formatted');
  if (existsSync(formatted)) return formatted;
  const work = await mkdtemp(join(cacheDirectory(version), 'format-'));
  try {
    const data = join(work, 'data');
    await mkdir(data);
    const properties = serverProperties({ client: 1, controller: 2 }, data, '127.0.0.1', { version });
    await writeFile(join(work, 'server.properties'), propertiesFile(properties));
    const clusterId = randomBytes(16).toString('base64url');
    const args = ['-cp', classPath, 'kafka.tools.StorageTool', 'format', `--cluster-id=${clusterId}`];
    args.push('-c', join(work, 'server.properties'), '--ignore-formatted');
    await run('java', args, { timeout: FORMAT_TIMEOUT_MS });
    const isFirst = await rename(data, formatted).then(
      () => true,
      (error: unknown) => {
        if (!existsSync(formatted)) throw error; // else another process was faster
        return false;
      },
    );
    if (isFirst) await archiveClasses(version, classPath, work);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return formatted;
}

/** The classes of a running broker as Java has them in memory: a start from it takes half the processor time. */
function classArchive(version: KafkaVersion): string {
  return join(cacheDirectory(version), 'classes.jsa');
}

async function archiveClasses(version: KafkaVersion, classPath: string, work: string): Promise<void> {
  const archive = join(work, 'classes.jsa');
  const javaOptions = [...JAVA_OPTIONS, QUICK_START, `-XX:ArchiveClassesAtExit=${archive}`];
  const ports = { client: await freePort(), controller: await freePort() };
  const broker = new JarBroker(version, classPath, javaOptions, join(work, 'broker'), true, ports);
  await mkdir(join(work, 'broker'));
  try {
    await broker.prepare({ version }, randomBytes(16).toString('base64url'), [ports.controller]);
    await broker.launch();
  } finally {
    await broker.stop();
  }
  // A Java without archives of classes has none.
  if (existsSync(archive)) await rename(archive, classArchive(version));
}
