/** The version of the store's layout, its journals and their keys, and how values are compressed. */

export const STORE_FORMAT = 7;

/** Whether a store of this format can be opened. Of any other it is refused. */
export function isReadableFormat(stored: string): boolean {
  return stored === String(STORE_FORMAT);
}

export class StoreFormatError extends Error {
  override name = 'StoreFormatError';
}

export function storeFormatError(path: string, stored: string): StoreFormatError {
  const remedy =
    Number(stored) < STORE_FORMAT
      ? 'an older version of Logring wrote it, and this one does not migrate it: run the version that wrote it'
      : 'a newer version of Logring wrote it: run that one';
  return new StoreFormatError(
    `${path} has format ${stored}, this version of Logring reads and writes format ${STORE_FORMAT}; ${remedy}, or begin with an empty LOGRING_DATA_DIR; the log is then read again as far as it goes back. Nothing was changed`,
  );
}
