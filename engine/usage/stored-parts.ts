/**
 * How the parts of a view stand in the store: a fresh one as chunks, a sealed one as a file and a summary.
 *
 *   usage/<hour>/<part>/<chunk>    see usage-chunk.ts; the last one is written again until it is large enough
 *   usage/<hour>/<part>/sealed     see sealed-part.ts
 */

import { USAGE_CHUNK_BYTES } from '../limits.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import { FreshPart } from './fresh/fresh-part.js';
import { type ChunkMark, decodeChunk, encodeChunk } from './fresh/usage-chunk.js';
import {
  encodeSummary,
  loadSummary,
  type PartName,
  padded,
  partPrefix,
  SealedPart,
  summaryName,
} from './sealed/sealed-part.js';

const PREFIX = 'usage/';

interface SavedState {
  readonly chunkIndex: number;
  readonly chunkStart: ChunkMark;
}

const NOTHING_SAVED: SavedState = { chunkIndex: 0, chunkStart: { urlCount: 0, entryCount: 0 } };

/** Notes what changed since the last save. */
export class StoredParts {
  readonly #saved = new Map<FreshPart, SavedState>();
  readonly #changed = new Set<FreshPart>();
  readonly #sealed = new Set<SealedPart>();
  /** Whose segments are to be deleted. */
  readonly #expired = new Set<PartName>();
  readonly #unwantedFiles = new Set<string>();
  /** Expired, but its file is still being read. */
  readonly #lingering = new Set<SealedPart>();

  changed(part: FreshPart): void {
    this.#changed.add(part);
  }

  /** A file is there in place of the fresh part. */
  sealed(fresh: FreshPart, part: SealedPart): void {
    this.#changed.delete(fresh);
    this.#saved.delete(fresh);
    this.#sealed.add(part);
  }

  expired(part: FreshPart | SealedPart): void {
    if (part.kind === 'sealed') {
      this.#lingering.add(part);
      return;
    }
    this.#changed.delete(part);
    if (this.#saved.delete(part)) this.#expired.add(part.name);
  }

  /** A file that was built for nothing. */
  unwanted(file: string): void {
    this.#unwantedFiles.add(file);
  }

  get hasUnsaved(): boolean {
    const { size: changedCount } = this.#changed;
    return (
      changedCount +
        this.#sealed.size +
        this.#expired.size +
        this.#unwantedFiles.size +
        this.#lingering.size >
      0
    );
  }

  save(writer: SegmentWriter): void {
    for (const part of this.#lingering) {
      if (part.readerCount > 0) continue;
      this.#lingering.delete(part);
      this.#sealed.delete(part);
      this.#expired.add(part.name);
      this.#unwantedFiles.add(part.file);
    }
    for (const name of this.#expired) writer.deletePrefix(partPrefix(name));
    this.#expired.clear();
    for (const file of this.#unwantedFiles) writer.remove(file);
    this.#unwantedFiles.clear();
    for (const { name, file, summary } of this.#sealed) {
      writer.adopt(file);
      writer.deletePrefix(partPrefix(name));
      writer.put(summaryName(name), encodeSummary(summary));
    }
    this.#sealed.clear();
    for (const part of this.#changed) {
      const saved = this.#saved.get(part) ?? NOTHING_SAVED;
      const bytes = encodeChunk(part, saved.chunkStart);
      writer.put(partPrefix(part.name) + padded(saved.chunkIndex), bytes);
      this.#saved.set(part, nextChunk(saved, bytes.length, part));
    }
    this.#changed.clear();
  }

  /** Tells of the parts that are stored, in order of hour and part: what is in a fresh one comes after that, in steps. */
  *load(
    reader: SegmentReader,
    nextSequence: () => number,
    begin: (part: FreshPart | SealedPart) => void,
  ): Generator<void, void> {
    let part: FreshPart | SealedPart | null = null;
    for (const segment of reader.list(PREFIX)) {
      yield;
      const parsed = parseUsageName(segment.name);
      if (parsed === null) throw new SegmentError('a usage segment has a foreign name');
      const { name, chunkIndex } = parsed;
      const isNew: boolean = part === null || !isSame(part.name, name);
      if (chunkIndex === null) {
        if (!isNew) throw new SegmentError('a part of usage is in chunks and in a file as well');
        part = new SealedPart(name, nextSequence(), loadSummary(segment.bytes, name, reader));
        begin(part);
        continue;
      }
      if (part === null || part.kind === 'sealed' || isNew) {
        part = new FreshPart(name, nextSequence());
        begin(part);
      }
      const chunkStart = decodeChunk(segment.bytes, part);
      this.#saved.set(part, nextChunk({ chunkIndex, chunkStart }, segment.bytes.length, part));
    }
  }
}

function nextChunk(saved: SavedState, byteCount: number, part: FreshPart): SavedState {
  if (byteCount < USAGE_CHUNK_BYTES) return saved;
  const chunkStart = { urlCount: part.urls.count, entryCount: part.entries.count };
  return { chunkIndex: saved.chunkIndex + 1, chunkStart };
}

function isSame(a: PartName, b: PartName): boolean {
  return a.hourIndex === b.hourIndex && a.partIndex === b.partIndex;
}

/** What the name of a segment says. */
interface UsageName {
  readonly name: PartName;
  /** null: of a summary. */
  readonly chunkIndex: number | null;
}

/** Null for a name that no segment of usage has. */
export function parseUsageName(text: string): UsageName | null {
  const match = /^usage\/(\d{8})\/(\d{8})\/(?:(\d{8})|sealed)$/.exec(text);
  if (match === null) return null;
  const name = { hourIndex: Number(match[1]), partIndex: Number(match[2]) };
  return { name, chunkIndex: match[3] === undefined ? null : Number(match[3]) };
}
