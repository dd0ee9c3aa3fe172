/** Kafka's own Java producer as a child process: the real thing for codecs and transactions. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { brokerClassPath, jarsUnavailable, type KafkaVersion, repositoryRoot } from './broker-jars.js';

const ANSWER_TIMEOUT_MS = 60_000;

export type JavaCodec = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';

/** Why it can't be run here, or null. */
export const javaProducerUnavailable: string | null = await jarsUnavailable();

export class JavaProducer {
  readonly #child: ChildProcess;
  readonly #lines: Interface;
  readonly #directory: string;
  #errors = '';
  #fileCount = 0;

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    this.#lines = createInterface({ input: child.stdout! });
    child.stderr!.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-4_000);
    });
  }

  /** It ends with this process: its standard input closes then. */
  static async start(version: KafkaVersion, brokers: readonly string[]): Promise<JavaProducer> {
    const directory = await mkdtemp(join(tmpdir(), 'logring-producer-'));
    const source = join(repositoryRoot(), 'test', 'kafka', 'broker', 'Produce.java');
    const java = [
      '-Xmx128m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-cp',
      await brokerClassPath(version),
    ];
    const child = spawn('java', [...java, source, brokers.join(',')], { stdio: ['pipe', 'pipe', 'pipe'] });
    const producer = new JavaProducer(child, directory);
    await producer.#answer('ready');
    return producer;
  }

  async send(topic: string, partition: number, codec: JavaCodec, values: readonly string[]): Promise<void> {
    await this.#command(`send ${topic} ${partition} ${codec} ${await this.#file(values)}`);
  }

  /** One record of an idempotent producer of its own. */
  async sendKeyed(topic: string, partition: number, key: string, value: string): Promise<void> {
    await this.#command(`keyed ${topic} ${partition} ${key} ${value}`);
  }

  async begin(id: string): Promise<void> {
    await this.#command(`begin ${id}`);
  }

  async add(id: string, topic: string, partition: number, values: readonly string[]): Promise<void> {
    await this.#command(`add ${id} ${topic} ${partition} ${await this.#file(values)}`);
  }

  async commit(id: string): Promise<void> {
    await this.#command(`commit ${id}`);
  }

  async abort(id: string): Promise<void> {
    await this.#command(`abort ${id}`);
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin!.end();
    await ended;
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #file(values: readonly string[]): Promise<string> {
    const path = join(this.#directory, `values-${this.#fileCount++}`);
    await writeFile(path, values.map((value) => `${value}\n`).join(''));
    return path;
  }

  async #command(line: string): Promise<void> {
    const answered = this.#answer('ok');
    this.#child.stdin!.write(`${line}\n`);
    await answered;
  }

  /** Other lines are the logging of Kafka's client. */
  async #answer(expected: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const fail = (message: string) => finish(() => reject(new Error(`${message}\n${this.#errors}`)));
      const timer = setTimeout(() => fail('the Java producer does not answer'), ANSWER_TIMEOUT_MS);
      const ended = () => fail('the Java producer has ended');
      const read = (line: string) => {
        if (line === expected) finish(resolve);
        else if (line.startsWith('error ')) fail(line);
      };
      const finish = (settle: () => void) => {
        clearTimeout(timer);
        this.#lines.off('line', read);
        this.#child.off('exit', ended);
        settle();
      };
      this.#lines.on('line', read);
      this.#child.once('exit', ended);
    });
  }
}
