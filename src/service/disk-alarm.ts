/**
 * What is wrong with the disk and its files, for the service's log. A full disk, or too many open files: said
 * once, ingest paused, and both taken back afterwards.
 */

import type { Logger } from 'pino';
import type { DiskRoomPorts } from '../store/disk/disk-room.js';
import type { Store } from '../store/store.js';
import type { IngestGate } from './ingest-gate.js';

export function diskAlarm(gate: IngestGate, logger: Logger, directory: string): DiskRoomPorts {
  const texts = {
    disk: {
      short: `the disk of ${directory} is full: ingest is paused until there is room`,
      paused: `ingest is paused: the disk of ${directory} is full; it goes on by itself when there is room`,
      over: `there is room on the disk of ${directory} again`,
    },
    descriptors: {
      short: `too many files are open to write to ${directory}: ingest is paused until some are closed`,
      paused: `ingest is paused: too many files and connections are open to write to ${directory}; it goes on by itself when some are closed, or with a higher limit (ulimit -n, LimitNOFILE)`,
      over: `files in ${directory} can be opened again`,
    },
  };
  return {
    onShort: (shortage, reason) => {
      logger.error({ reason }, texts[shortage].short);
      gate.close(shortage, texts[shortage].paused);
    },
    onRoom: (shortage) => {
      logger.info(texts[shortage].over);
      gate.open(shortage);
    },
  };
}

/** Files that are damaged, that could not be removed, or could not be written. */
export function tellOfFiles(store: Store, logger: Logger): void {
  store.damage.tell((problem) =>
    logger.error({ problem }, 'a stored file is damaged; answers that need it are refused'),
  );
  store.leftovers.tell(({ problem }) =>
    logger.warn({ problem }, 'a file that nothing needs could not be removed; it is tried again'),
  );
  store.onCheckpointFailed = (journal, { message }) =>
    logger.warn({ journal, problem: message }, 'a checkpoint could not be written; it is tried again');
}
