/**
 * A recorded run: entries that come in phases, and what is asked after each, with hashes of the answers. Kept
 * packed in `test/golden/answers.json.br`; made by `node dist/test/golden/record.js`, which is only right
 * where answers are meant to change.
 */

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import type { Service } from '../../src/service/service.js';
import { startClockedService } from '../clocked-service.js';
import { eventually } from '../eventually.js';

export interface Phase {
  /** The service's clock, which stands still. */
  readonly nowUs: number;
  /** Whether the service is stopped and started before. */
  readonly restarts: boolean;
  /** Bodies of newline-delimited JSON. */
  readonly edge: string;
  readonly relay: string;
  /** Paths with their query strings. */
  readonly questions: readonly string[];
  /** Of the answers to ANSWERS_A_HASH questions each, in order. */
  readonly hashes: readonly string[];
}

export const ANSWERS_A_HASH = 20;
const ASKED_AT_ONCE = 8;
const KEY = 'key-of-the-recording';
const FILE = fileURLToPath(new URL('../../../test/golden/answers.json.br', import.meta.url));

export function readRun(): Phase[] {
  return JSON.parse(brotliDecompressSync(readFileSync(FILE)).toString()) as Phase[];
}

export function writeRun(phases: readonly Phase[]): void {
  writeFileSync(FILE, brotliCompressSync(JSON.stringify(phases)));
}

/** The phases with the hashes that this code's answers have. */
export async function playRun(phases: readonly Phase[]): Promise<Phase[]> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-golden-'));
  const played: Phase[] = [];
  let service: Service | null = null;
  let nowUs = phases[0].nowUs;
  try {
    for (const phase of phases) {
      if (phase.restarts) await service?.stop();
      if (phase.restarts) service = null;
      nowUs = phase.nowUs;
      service ??= await start(directory, () => nowUs);
      await post(service, 'edge', phase.edge);
      await post(service, 'relay', phase.relay);
      await service.commit();
      played.push({ ...phase, hashes: await hashesOf(service, phase.questions) });
    }
  } finally {
    await service?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
  return played;
}

async function start(directory: string, nowUs: () => number): Promise<Service> {
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: KEY };
  const service = await startClockedService(settings, { nowUs, monotonicUs: nowUs });
  await untilReady(service);
  return service;
}

/** With a lag of 0 allowed, ready means that everything posted is applied. */
async function untilReady({ url }: Service): Promise<void> {
  await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
}

async function post(service: Service, source: string, body: string): Promise<void> {
  const response = await fetch(`${service.url}/api/logs?source_name=${source}`, {
    method: 'POST',
    headers: { 'X-API-KEY': KEY, 'Content-Type': 'application/x-ndjson' },
    body,
  });
  if (response.status !== 200) throw new Error(`posting: ${response.status} ${await response.text()}`);
  await untilReady(service);
}

async function hashesOf(service: Service, questions: readonly string[]): Promise<string[]> {
  const hashes: string[] = [];
  for (let first = 0; first < questions.length; first += ANSWERS_A_HASH) {
    const group = questions.slice(first, first + ANSWERS_A_HASH);
    const hash = createHash('sha256');
    for (const answer of await answersTo(service, group)) hash.update(`${answer.length} ${answer}\n`);
    hashes.push(hash.digest('hex').slice(0, 16));
  }
  return hashes;
}

/** In order. */
async function answersTo({ url }: Service, questions: readonly string[]): Promise<string[]> {
  const answers: string[] = [];
  for (let first = 0; first < questions.length; first += ASKED_AT_ONCE) {
    const asked = questions.slice(first, first + ASKED_AT_ONCE).map(async (path) => {
      const response = await fetch(`${url}/api/endpoints/query/${path}`, { headers: { 'X-API-KEY': KEY } });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
      return text;
    });
    answers.push(...(await Promise.all(asked)));
  }
  return answers;
}
