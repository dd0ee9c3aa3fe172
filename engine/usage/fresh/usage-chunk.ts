/**
 * A piece of a fresh part as a segment: the URLs and entries that came within a span of arrivals. The chunks
 * of a part, in order, are the part.
 *
 *   first URL code, URL count, first entry, entry count (u32 each)
 *   URL lengths (u32 each), URLs in UTF-8
 *   offsets within the hour in us (u32 each), URL codes (u32 each), areas (u8 each)
 */

import { ByteReader, ByteWriter } from '../../bytes.js';
import { ENTRY_BLOCK_COUNT } from '../../limits.js';
import { SegmentError } from '../../segments.js';
import { US_PER_HOUR } from '../../time.js';
import type { FreshPart } from './fresh-part.js';

/** A position between two arrivals of a part. */
export interface ChunkMark {
  readonly urlCount: number;
  readonly entryCount: number;
}

const writer = new ByteWriter();

/** What a part took from `start` on, up to now. */
export function encodeChunk(part: FreshPart, start: ChunkMark): Uint8Array {
  const { urls, entries } = part;
  writer.clear();
  writer.u32(start.urlCount);
  writer.u32(urls.count - start.urlCount);
  writer.u32(start.entryCount);
  writer.u32(entries.count - start.entryCount);
  const firstSlab = urls.slabIndexOf(start.urlCount);
  const newSlabs = start.urlCount === urls.count ? [] : urls.slabs.slice(firstSlab);
  for (const slab of newSlabs) {
    for (let i = Math.max(0, start.urlCount - slab.firstCode); i < slab.count; i++) {
      writer.u32(slab.ends[i] - slab.startOf(i));
    }
  }
  for (const slab of newSlabs) {
    const firstIndex = Math.max(0, start.urlCount - slab.firstCode);
    writer.bytes(slab.bytes.subarray(slab.startOf(firstIndex), slab.byteCount));
  }
  const spans = entrySpans(part, start.entryCount);
  for (const { block, from } of spans)
    for (let i = from; i < block.count; i++) writer.u32(block.offsetsUs[i]);
  for (const { block, from } of spans) for (let i = from; i < block.count; i++) writer.u32(block.urlCodes[i]);
  for (const { block, from } of spans) writer.bytes(block.areas.subarray(from, block.count));
  return writer.finish();
}

/** Adds a chunk to the part that the chunks before it made; returns the chunk's start. */
export function decodeChunk(bytes: Uint8Array, part: FreshPart): ChunkMark {
  const reader = new ByteReader(bytes);
  const start = { urlCount: reader.u32(), entryCount: 0 };
  const urlCount = reader.u32();
  start.entryCount = reader.u32();
  const entryCount = reader.u32();
  if (start.urlCount !== part.urls.count || start.entryCount !== part.entries.count) {
    throw new SegmentError('a usage chunk does not go on where the one before it ends');
  }
  const urlLengths = reader.u32s(urlCount);
  const urls = reader.bytes(urlLengths.reduce((sum, length) => sum + length, 0));
  let urlStart = 0;
  for (const length of urlLengths) {
    part.urls.append(urls, length, urlStart);
    urlStart += length;
  }
  const offsets = new ByteReader(reader.bytes(4 * entryCount));
  const urlCodes = new ByteReader(reader.bytes(4 * entryCount));
  const areas = new ByteReader(reader.bytes(entryCount));
  for (let i = 0; i < entryCount; i++) {
    const offsetUs = offsets.u32();
    const urlCode = urlCodes.u32();
    if (offsetUs >= US_PER_HOUR || urlCode >= part.urls.count) {
      throw new SegmentError('a usage chunk holds an entry that no part could hold');
    }
    part.entries.append(offsetUs, urlCode, areas.u8());
  }
  if (reader.remaining !== 0) throw new SegmentError('a usage chunk is longer than it says');
  return start;
}

function entrySpans(part: FreshPart, firstEntry: number) {
  const spans = [];
  const firstBlock = Math.floor(firstEntry / ENTRY_BLOCK_COUNT);
  for (let b = firstBlock; b < part.entries.blocks.length; b++) {
    spans.push({
      block: part.entries.blocks[b],
      from: b === firstBlock ? firstEntry % ENTRY_BLOCK_COUNT : 0,
    });
  }
  return spans;
}
