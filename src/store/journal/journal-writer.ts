/**
 * Makes changes of journals durable: what is asked for while a write runs goes together into the next, a
 * frame a journal. Where much of a journal's files is of no use any more, a checkpoint takes their place.
 */

import { entryOf } from '../../../engine/entry-of.js';
import { SegmentError } from '../../../engine/segments.js';
import { inTurns } from '../../in-turns.js';
import { errorText, isSystemError, SyncError } from '../disk/system-errors.js';
import { StorageEndedError, type StorageThread } from '../thread/storage-thread.js';
import type { Put } from './frame.js';
import type { CheckpointPlaces, CheckpointTerms, Journal, PendingFrame } from './journal.js';
import { journalPath } from './journal-folder.js';

/** What a commit changes of one journal. */
export interface JournalChanges {
  readonly journal: Journal;
  readonly puts: readonly Put[];
  readonly removedKeys: readonly string[];
  /** What time it is, µs since the epoch. */
  readonly timeUs: number | null;
}

export interface JournalWriterPorts {
  readonly thread: StorageThread;
  readonly checkpointTerms: (journal: Journal) => CheckpointTerms;
  /** Throws when no later start would find what was written. */
  readonly assertSame: () => void;
  /** Throws when a file has not so many bytes: somebody else has changed it. */
  readonly assertBytes: (path: string, byteCount: number) => void;
  /** Files that nothing needs any more. */
  readonly onReplaced: (paths: readonly string[]) => void;
  /** A checkpoint could not be written: the journal is damaged, or the system refused it. */
  readonly onFailed: (journal: Journal, error: Error) => void;
}

/** A write failed, and what it may have left behind could not be taken away so far: the next start may find it. */
export class UncleanError extends Error {
  override name = 'UncleanError';
}

interface Waiting {
  readonly changes: readonly JournalChanges[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class JournalWriter {
  readonly #ports: JournalWriterPorts;
  #waiting: Waiting[] = [];
  #running: Promise<void> | null = null;
  /** What a write that failed may have left behind the ends of files. */
  #unclean: { readonly path: string; readonly byteCount: number }[] = [];
  #checkpoint: Promise<void> | null = null;
  #isEnding = false;
  readonly #journals: () => Iterable<Journal>;

  /** `journals`: those that it writes, and no other writer. */
  constructor(ports: JournalWriterPorts, journals: () => Iterable<Journal>) {
    this.#ports = ports;
    this.#journals = journals;
  }

  /**
   * Makes changes durable, those of one journal as one. Rejects with what the system said; then none is
   * kept, unless it is an UncleanError, and the same may be tried again.
   */
  write(changes: readonly JournalChanges[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when no write is under way. A checkpoint may be; none is begun any more, as it would be broken off. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#running;
  }

  /** Resolves when no checkpoint is under way. */
  async checkpointed(): Promise<void> {
    await this.#running;
    await this.#checkpoint;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeNow(group.flatMap(({ changes }) => changes));
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
        continue;
      }
      await this.#beginCheckpoint();
    }
    this.#running = null;
  }

  async #writeNow(changes: readonly JournalChanges[]): Promise<void> {
    const { thread } = this.#ports;
    const frames: { readonly journal: Journal; readonly frame: PendingFrame }[] = [];
    for (const { journal, puts, removedKeys, timeUs } of mergedByJournal(changes))
      frames.push({ journal, frame: await inTurns(journal.frame(puts, removedKeys, timeUs)) });
    await this.#clean();
    for (const { frame } of frames) this.#ports.assertBytes(frame.path, frame.fileBytes);
    this.#unclean = frames.map(({ frame }) => ({ path: frame.path, byteCount: frame.fileBytes }));
    try {
      await thread.append(frames.map(({ frame: { path, bytes } }) => ({ path, bytes })));
    } catch (error) {
      // What is told to be refused is not to be there after a crash; where that fails, it is tried again.
      if (error instanceof SyncError || error instanceof StorageEndedError) throw error;
      await this.#clean().catch(() => undefined);
      throw this.#unclean.length > 0 ? new UncleanError(errorText(error), { cause: error }) : error;
    }
    this.#unclean = [];
    this.#ports.assertSame();
    for (const { journal, frame } of frames) journal.take(frame);
  }

  async #clean(): Promise<void> {
    if (this.#unclean.length > 0) await this.#ports.thread.cutBack(this.#unclean);
    this.#unclean = [];
  }

  /** Of one journal at a time; one that fails is tried again when more is of no use. */
  async #beginCheckpoint(): Promise<void> {
    if (this.#checkpoint !== null || this.#isEnding) return;
    const [journal] = [...this.#journals()]
      .filter((due) => due.isCheckpointDue())
      .sort((a, b) => b.uselessBytes - a.uselessBytes);
    if (journal === undefined) return;
    const { thread } = this.#ports;
    try {
      const next = journalPath(journal.folder, journal.nextNumber);
      await thread.append([{ path: next, bytes: new Uint8Array(0) }]);
    } catch (error) {
      this.#noteFailure(journal, error);
      return;
    }
    this.#checkpoint = this.#writeCheckpoint(journal).then(() => {
      this.#checkpoint = null;
    });
  }

  async #writeCheckpoint(journal: Journal): Promise<void> {
    const { thread, checkpointTerms, onReplaced } = this.#ports;
    const pending = journal.turn();
    const { folder, name } = journal;
    let places: CheckpointPlaces;
    try {
      places = await thread.checkpoint({ folder, name, number: pending.number, last: pending.last });
    } catch (error) {
      this.#noteFailure(journal, error);
      return;
    }
    onReplaced(journal.adopt(pending, places));
    journal.checkpointTerms = checkpointTerms(journal);
  }

  /** Commits go on in the file that they have; it is tried again when as much more is of no use. */
  #noteFailure(journal: Journal, error: unknown): void {
    journal.checkpointTerms = this.#ports.checkpointTerms(journal);
    journal.postponeCheckpoint();
    if (error instanceof StorageEndedError || error instanceof SyncError) return;
    if (!(error instanceof SegmentError) && !isSystemError(error)) throw error;
    this.#ports.onFailed(journal, error as Error);
  }
}

/** The same changes, a frame's a journal; of two of the same key the later. */
function mergedByJournal(changes: readonly JournalChanges[]): readonly JournalChanges[] {
  const byJournal = new Map<Journal, JournalChanges[]>();
  for (const change of changes) {
    entryOf(byJournal, change.journal, () => []).push(change);
  }
  return [...byJournal].map(([journal, ofJournal]) =>
    ofJournal.length === 1 ? ofJournal[0] : merged(journal, ofJournal),
  );
}

function merged(journal: Journal, changes: readonly JournalChanges[]): JournalChanges {
  const values = new Map<string, Uint8Array | null>();
  let timeUs: number | null = null;
  for (const change of changes) {
    for (const { key, value } of change.puts) values.set(key, value);
    for (const key of change.removedKeys) values.set(key, null);
    timeUs = change.timeUs ?? timeUs;
  }
  const puts: Put[] = [];
  const removedKeys: string[] = [];
  for (const [key, value] of values) {
    if (value === null) removedKeys.push(key);
    else puts.push({ key, value });
  }
  return { journal, puts, removedKeys, timeUs };
}
