/** Apache Kafka's own jars, fetched once per version with Maven into the repository's `.cache` directory. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type KafkaVersion = '3.9' | '4.1';

const RELEASES: Record<KafkaVersion, string> = { '3.9': '3.9.1', '4.1': '4.1.1' };

/** Maven's answer takes seconds; a registry that hangs must not hang the tests. */
const FETCH_TIMEOUT_MS = 300_000;
const PROBE_TIMEOUT_MS = 30_000;

export function releaseOf(version: KafkaVersion): string {
  return RELEASES[version];
}

/** Found by a file of the sources: the compiled tests lie at different depths below it. */
export function repositoryRoot(): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, 'test', 'kafka', 'broker', 'Produce.java'))) {
    const parent = dirname(directory);
    if (parent === directory) throw new Error(`no sources above ${import.meta.url}`);
    directory = parent;
  }
  return directory;
}

export function cacheDirectory(version: KafkaVersion): string {
  return join(repositoryRoot(), '.cache', 'kafka', RELEASES[version]);
}

function jarsDirectory(version: KafkaVersion): string {
  return join(cacheDirectory(version), 'libs');
}

/** Why no broker can be run from jars here, or null when one can. */
export async function jarsUnavailable(): Promise<string | null> {
  if (!(await answers('java', ['-version']))) return 'there is no Java to run a broker with';
  const cached = (Object.keys(RELEASES) as KafkaVersion[]).every((version) =>
    existsSync(jarsDirectory(version)),
  );
  if (cached || (await answers('mvn', ['-v']))) return null;
  return 'there is no Maven to fetch the broker with';
}

async function answers(command: string, args: string[]): Promise<boolean> {
  try {
    await run(command, args, { timeout: PROBE_TIMEOUT_MS });
    return true;
  } catch {
    return false; // not installed, which is the question
  }
}

/** The class path of the whole server. Safe to call from several processes at once. */
export async function brokerClassPath(version: KafkaVersion): Promise<string> {
  const libs = jarsDirectory(version);
  if (!existsSync(libs)) await fetchJars(version, libs);
  return join(libs, '*');
}

async function fetchJars(version: KafkaVersion, libs: string): Promise<void> {
  await mkdir(cacheDirectory(version), { recursive: true });
  const work = await mkdtemp(join(cacheDirectory(version), 'fetch-'));
  try {
    await writeFile(join(work, 'pom.xml'), pom(version));
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
    const args = ['-B', '-q', '-f', join(work, 'pom.xml'), goal];
    args.push('-DincludeScope=runtime', `-DoutputDirectory=${join(work, 'libs')}`);
    await run('mvn', args, { timeout: FETCH_TIMEOUT_MS });
    await rename(join(work, 'libs'), libs).catch((error: unknown) => {
      if (!existsSync(libs)) throw error; // else another process was faster
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

function pom(version: KafkaVersion): string {
  const logging: readonly [string, string, string][] =
    version === '3.9'
      ? [['org.slf4j', 'slf4j-reload4j', '1.7.36']]
      : ['log4j-slf4j-impl', 'log4j-core', 'log4j-1.2-api'].map((artifact) => [
          'org.apache.logging.log4j',
          artifact,
          '2.25.2',
        ]);
  const dependencies = [['org.apache.kafka', 'kafka_2.13', RELEASES[version]] as const, ...logging]
    .map(
      ([group, artifact, release]) =>
        `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId>` +
        `<version>${release}</version></dependency>`,
    )
    .join('');
  return (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>' +
    '<groupId>logring</groupId><artifactId>test-broker</artifactId><version>1</version>' +
    `<packaging>pom</packaging><dependencies>${dependencies}</dependencies></project>`
  );
}
