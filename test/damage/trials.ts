/**
 * One damage at a time to a store: bytes flipped, files cut short or missing. What came of each is told; the
 * store is as before again.
 */

import {
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
import { basename, dirname, join } from 'node:path';
import { SegmentError } from '../../engine/segments.js';
import { repairStore } from '../../src/check/repair.js';
import { checkStore } from '../../src/check/store-check.js';
import { StoreFormatError } from '../../src/store/directory/store-format.js';
import { withRemedy } from '../../src/store/directory/store-marker.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { parseJournalFile } from '../../src/store/journal/journal-folder.js';
import { HEAD_KEY, Journals, SCOPE_KEY } from '../../src/store/journal/journals.js';
import { type StoreBackEnds, SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { type Answers, askStore, wrongAnswer } from './answers.js';
import { NOW_US } from './small-store.js';
import { STORAGE_HERE } from './storage-here.js';

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

const SAYS_WHAT_TO_DO = /logring check|LOGRING_DATA_DIR/;

/** The files of a store as they should be. */
export class Pristine {
  readonly directory: string;
  readonly files = new Map<string, Buffer>();
  readonly right: Answers;
  /** What the journals hold. */
  readonly #journalText: string;

  private constructor(directory: string, right: Answers, files: Map<string, Buffer>) {
    this.directory = directory;
    this.right = right;
    this.files = files;
    this.#journalText = journalText(directory);
  }

  static async of(directory: string): Promise<Pristine> {
    const files = filesOf(directory);
    const { answers } = await askStore(directory);
    const pristine = new Pristine(directory, answers, files);
    pristine.restore();
    return pristine;
  }

  /** Every file as it was, and no other; folders that a repair made go too: each trial looks through all there are. */
  restore(): void {
    const roots = new Set([...this.files.keys()].map((file) => file.split('/')[0]));
    for (const name of readdirSync(this.directory))
      if (!roots.has(name)) rmSync(join(this.directory, name), { recursive: true });
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

  /**
   * What comes of a damage. Only when `isThorough` the whole service is opened, with its storage thread: else for one
   * of a journal the journals are, and everything in them compared.
   */
  async outcomeOf(damage: Damage, isThorough: boolean): Promise<Outcome> {
    this.inflict(damage);
    if (isOfJournal(damage.file) && damage.kind !== 'missing' && !isThorough) {
      const outcome = this.#journalOutcome();
      writeFileSync(join(this.directory, damage.file), this.files.get(damage.file)!);
      return outcome;
    }
    const outcome = await this.#serviceOutcome(isThorough ? SYSTEM_PARTS : STORAGE_HERE);
    this.restore();
    return outcome;
  }

  /**
   * What comes of a damage and of its repair: after it the store must be whole, and every answer right or
   * said to be incomplete. `refused`: there is nothing to repair, with a sentence that says so. `clockUs`: what the
   * machine's clock says meanwhile.
   */
  async repairedOutcome(damage: Damage, clockUs = NOW_US): Promise<Outcome> {
    this.inflict(damage);
    try {
      let checked: ReturnType<typeof checkStore>;
      try {
        checked = checkStore(this.directory, clockUs);
      } catch (error) {
        return isRefusal(error) ? 'refused' : { failure: stackOf(error) };
      }
      const { store, findings } = checked;
      const isDamaged = findings.some(({ remedy }) => remedy !== null);
      if (isDamaged) repairStore(store, findings);
      const left = checkStore(this.directory, clockUs).findings.filter(({ remedy }) => remedy !== null);
      if (left.length > 0) return { failure: `after the repair: ${left.map(({ what }) => what).join('; ')}` };
      const opened = await askStore(this.directory, STORAGE_HERE);
      const wrong = wrongAnswer(opened, this.right);
      if (wrong !== null) return { failure: wrong };
      if (opened.damagedFileCount > 0) return { failure: 'there is damage after the repair' };
      return isDamaged ? 'shown' : 'right';
    } catch (error) {
      return { failure: stackOf(error) };
    } finally {
      this.restore();
    }
  }

  /** As the start reads it. */
  #journalOutcome(): Outcome {
    try {
      return journalText(this.directory) === this.#journalText
        ? 'right'
        : { failure: 'a journal holds something else, and it was not noticed' };
    } catch (error) {
      return isRefusal(error) ? 'refused' : { failure: stackOf(error) };
    }
  }

  async #serviceOutcome(parts: StoreBackEnds): Promise<Outcome> {
    try {
      const opened = await askStore(this.directory, parts);
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

/**
 * All that the journals of a directory hold but what stands in `meta` to guard the others: without it they are as they
 * were. What repairs have dropped is compared: it stands in a checkpoint, of which no end can be missing unnoticed.
 */
function journalText(directory: string): string {
  const journals = new Journals(SYSTEM_DISK, directory, SYSTEM_PARTS);
  const lines: string[] = [];
  for (const journal of journals.all()) {
    for (const { key, value } of journal.entries())
      if (!key.startsWith(HEAD_KEY) && !key.startsWith(SCOPE_KEY))
        lines.push(`${journal.name} ${key} ${Buffer.from(value).toString('latin1')}\n`);
  }
  journals.close();
  return lines.sort().join('');
}

/** Whether the file is of a journal. */
export function isOfJournal(file: string): boolean {
  return parseJournalFile(basename(file)) !== null;
}

function filesOf(directory: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
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
