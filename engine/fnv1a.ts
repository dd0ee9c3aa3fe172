/** The hash FNV-1a of bytes [start, end), 32 bits, unsigned. Source: Fowler, Noll and Vo. */
export function fnv1a(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return hash >>> 0;
}
