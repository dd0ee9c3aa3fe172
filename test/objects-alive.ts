import { queryObjects } from 'node:v8';

/** How many objects of the class the heap holds after a collection. */
export function objectsAlive(ctor: typeof Promise | typeof Array | typeof Uint8Array): number {
  // Node warns that the function is experimental; the tests print no warning, so that one of the product's is seen.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return queryObjects(ctor, { format: 'count' });
  } finally {
    process.emitWarning = emitWarning;
  }
}
