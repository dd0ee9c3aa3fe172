/**
 * One damage at a time to a store: bytes flipped, files cut short or missing. What came of each is told; the
 * store is as before again.
 */

import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { open } from 'lmdb';
import { SegmentError } from '../../engine/segments.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { surveyLmdb } from '../../src/store/lmdb-survey.js';
import { tableProblems, withRemedy } from '../../src/store/sound-table.js';
import { StoreFormatError } from '../../src/store/store-format.js';
import { type Answers, askStore, wrongAnswer } from './answers.js';
import { NOW_US } from './small-store.js';

export type Damage =
  /** The byte is XORed with the mask. */
  | { readonly kind: 'flip'; readonly file: string; readonly at: number; readonly mask: number }
  | { readonly kind: 'cut'; readonly file: string; readonly length: number }
  | { readonly kind: 'missing'; readonly file: string };

export type Outcome =
  /** All answers are right: nothing of the store depends on what was damaged. */
  | 'right'
  /** The start was refused with a sentence that says what to do. */
  | 'refused'
  /** Some answers were refused, the others right, and the damage is shown. */
  | 'shown'
  /** Anything else: a wrong answer, another exception. */
  | { readonly failure: string };

const TABLE_FILE = 'store.lmdb';
const SAYS_WHAT_TO_DO = /logring check|LOGRING_DATA_DIR/;

/** The files of a store as they should be. */
export class Pristine {
  readonly directory: string;
  readonly files = new Map<string, Buffer>();
  readonly right: Answers;
  /** What the tables hold, in order. */
  readonly #tableText: string;

  private constructor(directory: string, right: Answers, files: Map<string, Buffer>) {
    this.directory = directory;
    this.right = right;
    this.files = files;
    this.#tableText = tableText(join(directory, TABLE_FILE));
  }

  static async of(directory: string): Promise<Pristine> {
    const files = filesOf(directory);
    const { answers } = await askStore(directory);
    const pristine = new Pristine(directory, answers, files);
    pristine.restore();
    return pristine;
  }

  /** Every file as it was. */
  restore(): void {
    for (const file of filesOf(this.directory).keys())
      if (!this.files.has(file)) rmSync(join(this.directory, file), { force: true });
    for (const [file, bytes] of this.files) {
      mkdirSync(dirname(join(this.directory, file)), { recursive: true });
      writeFileSync(join(this.directory, file), bytes);
    }
  }

  inflict(damage: Damage): void {
    const path = join(this.directory, damage.file);
    if (damage.kind === 'missing') rmSync(path);
    else if (damage.kind === 'cut') truncateSync(path, damage.length);
    else writeByte(path, damage.at, this.files.get(damage.file)![damage.at] ^ damage.mask);
  }

  undo(damage: Damage): void {
    const bytes = this.files.get(damage.file)!;
    const path = join(this.directory, damage.file);
    if (damage.kind === 'flip') writeByte(path, damage.at, bytes[damage.at]);
    else if (damage.kind === 'cut') appendFileSync(path, bytes.subarray(damage.length));
    else writeFileSync(path, bytes);
  }

  /**
   * What comes of a damage. For one of the tables the whole service is opened only when `isThorough`: else
   * LMDB is, where Logring would let it, and everything in it compared.
   */
  async outcomeOf(damage: Damage, isThorough: boolean): Promise<Outcome> {
    this.inflict(damage);
    if (damage.file === TABLE_FILE && damage.kind !== 'missing' && !isThorough) {
      const outcome = this.#tableOutcome();
      this.undo(damage);
      return outcome;
    }
    const outcome = await this.#serviceOutcome();
    this.restore();
    return outcome;
  }

  /**
   * What comes of a damage and of its repair: after it the store must be whole, and every answer right or
   * said to be incomplete. `refused`: there is nothing to repair, with a sentence that says so.
   */
  async repairedOutcome(damage: Damage): Promise<Outcome> {
    this.inflict(damage);
    try {
      const { store, findings } = checkStore(this.directory, NOW_US);
      const isDamaged = findings.some(({ remedy }) => remedy !== null);
      if (isDamaged) await repairStore(store, findings);
      const left = checkStore(this.directory, NOW_US).findings.filter(({ remedy }) => remedy !== null);
      if (left.length > 0) return { failure: `after the repair: ${left.map(({ what }) => what).join('; ')}` };
      const opened = await askStore(this.directory);
      const wrong = wrongAnswer(opened, this.right);
      if (wrong !== null) return { failure: wrong };
      if (opened.damagedFileCount > 0) return { failure: 'there is damage after the repair' };
      return isDamaged ? 'shown' : 'right';
    } catch (error) {
      return isRefusal(error) ? 'refused' : { failure: stackOf(error) };
    } finally {
      this.restore();
    }
  }

  #tableOutcome(): Outcome {
    const path = join(this.directory, TABLE_FILE);
    try {
      if (tableProblems(path).length > 0) return 'refused';
    } catch (error) {
      if (error instanceof StoreFormatError) return 'refused';
      return { failure: stackOf(error) };
    }
    const root = open({ path, encoding: 'binary', overlappingSync: false, maxDbs: 8, readOnly: true });
    let text = '';
    for (const name of ['dead-letters', 'files', 'log', 'meta', 'segments']) {
      for (const { key, value } of root.openDB<Buffer, string>({ name, encoding: 'binary' }).getRange())
        text += entryText(name, key, value);
    }
    void root.close();
    return text === this.#tableText
      ? 'right'
      : { failure: 'LMDB holds something else, and it was not noticed' };
  }

  async #serviceOutcome(): Promise<Outcome> {
    try {
      const opened = await askStore(this.directory);
      const wrong = wrongAnswer(opened, this.right);
      if (wrong !== null) return { failure: wrong };
      return opened.damagedFileCount > 0 ? 'shown' : 'right';
    } catch (error) {
      return isRefusal(error) ? 'refused' : { failure: stackOf(error) };
    }
  }
}

/** An error whose message says what an operator can do. */
function isRefusal(error: unknown): boolean {
  const isOperators = error instanceof SegmentError || error instanceof StoreFormatError;
  return isOperators && SAYS_WHAT_TO_DO.test(withRemedy(error, 'DIR').message);
}

function tableText(path: string): string {
  let text = '';
  surveyLmdb(path, (table, key, value) => {
    text += entryText(table, key, value);
    return true;
  });
  return text;
}

function entryText(table: string, key: string, value: Uint8Array): string {
  return `${table} ${key} ${Buffer.from(value).toString('latin1')}\n`;
}

function filesOf(directory: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === 'store.lmdb-lock') continue;
    const path = join(entry.parentPath, entry.name);
    files.set(path.slice(directory.length + 1), readFileSync(path));
  }
  return files;
}

function writeByte(path: string, at: number, byte: number): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, Uint8Array.of(byte), 0, 1, at);
  closeSync(descriptor);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
