/**
 * A store as it stood on disk, in one file: `test/golden/store-format-<n>.json.gz`, gzipped JSON of its files
 * in base64 and of the answers that it gave. One for a new format is made by node
 * dist/test/damage/golden-store.js
 */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { STORE_FORMAT } from '../../src/store/directory/store-format.js';
import { askStore } from './answers.js';
import { LARGER, writeSmallStore } from './small-store.js';

export interface GoldenStore {
  /** Base64 by path. */
  readonly files: Readonly<Record<string, string>>;
  /** By question. */
  readonly answers: Readonly<Record<string, string | null>>;
}

export function goldenPath(format: number): string {
  return fileURLToPath(new URL(`../../../test/golden/store-format-${format}.json.gz`, import.meta.url));
}

export function readGolden(format: number): GoldenStore {
  return JSON.parse(gunzipSync(readFileSync(goldenPath(format))).toString()) as GoldenStore;
}

export function unpackGolden({ files }: GoldenStore, directory: string): void {
  for (const [path, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), Buffer.from(bytes, 'base64'));
  }
}

async function writeGolden(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-golden-'));
  try {
    await writeSmallStore(directory, LARGER);
    const files: Record<string, string> = {};
    for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      files[path.slice(directory.length + 1)] = readFileSync(path).toString('base64');
    }
    const { answers } = await askStore(directory);
    const golden = {
      files,
      answers: Object.fromEntries([...answers].map(([name, { text }]) => [name, text])),
    };
    mkdirSync(dirname(goldenPath(STORE_FORMAT)), { recursive: true });
    writeFileSync(goldenPath(STORE_FORMAT), gzipSync(JSON.stringify(golden), { level: 9 }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeGolden();
