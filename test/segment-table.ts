/**
 * Segments and files of blocks in memory: the store's side of engine/segments.ts, for tests without a disk.
 */

import { type CompactionPlan, type CompactionSizes, compactRuns } from '../engine/rows/compaction.js';
import type { RowsView } from '../engine/rows/rows-view.js';
import {
  type FileBuilder,
  SegmentError,
  type SegmentReader,
  type SegmentWriter,
} from '../engine/segments.js';
import { finished } from '../engine/steps.js';

export class SegmentTable implements SegmentReader, SegmentWriter, FileBuilder {
  readonly #segments: Map<string, Uint8Array>;
  readonly #files: Map<string, Uint8Array[]>;
  /** Files that were built and not adopted: a crash forgets them. */
  readonly #aside = new Map<string, Uint8Array[]>();

  constructor(
    segments: Iterable<readonly [string, Uint8Array]> = [],
    files: Iterable<readonly [string, Uint8Array[]]> = [],
  ) {
    this.#segments = new Map(segments);
    this.#files = new Map([...files].map(([name, blocks]) => [name, [...blocks]]));
  }

  /** The table as it is now, unaffected by what comes: what a crash would leave. */
  copy(): SegmentTable {
    return new SegmentTable(this.#segments, this.#files);
  }

  /** What a new process no longer finds. */
  forgetAside(): void {
    this.#aside.clear();
  }

  get names(): string[] {
    return [...this.#segments.keys()].sort();
  }

  get files(): string[] {
    return [...this.#files.keys()].sort();
  }

  get asideFiles(): string[] {
    return [...this.#aside.keys()].sort();
  }

  get byteCount(): number {
    const values = [...this.#segments.values(), ...[...this.#files.values()].flat()];
    return values.reduce((sum, bytes) => sum + bytes.length, 0);
  }

  put(name: string, bytes: Uint8Array): void {
    this.#segments.set(name, bytes);
  }

  delete(name: string): void {
    this.#segments.delete(name);
  }

  deletePrefix(prefix: string): void {
    for (const name of this.#segments.keys()) if (name.startsWith(prefix)) this.#segments.delete(name);
  }

  create(file: string, _sample: Uint8Array | null): void {
    if (this.#files.has(file) || this.#aside.has(file)) throw new Error(`${file} is made a second time`);
    this.#aside.set(file, []);
  }

  /** Keeps a copy, and says at once that it is stored; a file that is built is told of numbers instead. */
  append(file: string, bytes: Uint8Array, onStored?: unknown): void {
    const blocks = this.#aside.get(file) ?? this.#files.get(file);
    if (blocks === undefined) this.#files.set(file, [bytes.slice()]);
    else blocks.push(bytes.slice());
    if (typeof onStored === 'function') onStored();
  }

  adopt(file: string): void {
    this.#files.set(file, this.#aside.get(file)!);
    this.#aside.delete(file);
  }

  remove(file: string): void {
    this.#files.delete(file);
    this.#aside.delete(file);
  }

  /** For damage. */
  replaceBlock(file: string, index: number, bytes: Uint8Array): void {
    (this.#files.get(file) ?? this.#aside.get(file))![index] = bytes;
  }

  block(file: string, index: number): Uint8Array {
    const block = (this.#files.get(file) ?? this.#aside.get(file))?.[index];
    if (block === undefined) throw new SegmentError(`block ${index} of ${file} is not there`);
    return block;
  }

  release(): void {}

  blockCount(file: string): number {
    return (this.#files.get(file) ?? this.#aside.get(file))?.length ?? 0;
  }

  get(name: string): Uint8Array | null {
    return this.#segments.get(name) ?? null;
  }

  *list(prefix: string): Iterable<{ name: string; bytes: Uint8Array }> {
    for (const name of this.names) {
      if (name.startsWith(prefix)) yield { name, bytes: this.#segments.get(name)!.slice() };
    }
  }
}

/** A compaction under way, as the storage thread would run it. */
export class TableCompaction {
  readonly plan: CompactionPlan;
  readonly #view: RowsView;
  readonly #steps: Generator<void, Uint8Array | null>;

  private constructor(view: RowsView, table: SegmentTable, plan: CompactionPlan, sizes: CompactionSizes) {
    this.plan = plan;
    this.#view = view;
    this.#steps = compactRuns(plan, builderFor(plan, table), sizes);
  }

  /** Begins the compaction that is due, if one is. */
  static begin(
    view: RowsView,
    table: SegmentTable,
    nowUs: number,
    sizes: CompactionSizes,
  ): TableCompaction | null {
    const plan = view.planCompaction(nowUs);
    return plan && new TableCompaction(view, table, plan, sizes);
  }

  /** Goes on; true when it is finished. */
  advance(stepCount: number): boolean {
    for (let i = 0; i < stepCount; i++) {
      const step = this.#steps.next();
      if (!step.done) continue;
      finished(this.#view.finishCompaction(this.plan, step.value));
      return true;
    }
    return false;
  }
}

/** Reads the inputs as they were at the beginning, as a thread does that has them open. */
function builderFor({ inputs }: CompactionPlan, table: SegmentTable): FileBuilder {
  const whole = table.copy();
  const isInput = (file: string): boolean => inputs.some((input) => input.file === file);
  return {
    create: (file, sample) => table.create(file, sample),
    append: (file, bytes) => table.append(file, bytes),
    remove: (file) => table.remove(file),
    // A copy, spoiled once nobody may look at it.
    block: (file, index) => (isInput(file) ? whole : table).block(file, index).slice(),
    release: (block) => block.fill(0xff),
    blockCount: (file) => (isInput(file) ? whole : table).blockCount(file),
  };
}
