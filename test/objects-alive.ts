import { queryObjects } from 'node:v8';

/** How many objects of the class the heap holds after a collection. */
export function objectsAlive(ctor: abstract new (...args: never[]) => unknown): number {
  // Node warns that the function is experimental; the tests print no warning, so that one of the product's is seen.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return queryObjects(ctor, { format: 'count' });
  } finally {
    process.emitWarning = emitWarning;
  }
}
