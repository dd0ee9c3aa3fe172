/**
 * Cuts a failing list down to a small one that still fails: delta debugging, with a bound on the number of
 * tries.
 */

/**
 * `fails` is asked for lists that miss some of the items; the answer is 1-minimal (no single item can go)
 * unless `maxTries` ran out before.
 */
export async function shrinkList<Item>(
  items: readonly Item[],
  fails: (items: readonly Item[]) => Promise<boolean>,
  maxTries: number,
): Promise<readonly Item[]> {
  let kept = items;
  let chunkSize = Math.ceil(kept.length / 2);
  let tries = 0;
  while (chunkSize >= 1 && tries < maxTries) {
    let removed = false;
    for (let start = 0; start < kept.length && tries < maxTries; ) {
      const candidate = [...kept.slice(0, start), ...kept.slice(start + chunkSize)];
      tries += 1;
      if (await fails(candidate)) {
        kept = candidate;
        removed = true;
      } else {
        start += chunkSize;
      }
    }
    if (chunkSize === 1 && !removed) break;
    chunkSize = chunkSize === 1 ? 1 : Math.ceil(chunkSize / 2);
  }
  return kept;
}
