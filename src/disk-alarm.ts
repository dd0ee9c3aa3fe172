/** What a full disk means for the service: said once, ingest paused, and both taken back when there is room. */

import type { Logger } from 'pino';
import type { IngestGate } from './ingest-gate.js';
import type { DiskRoomPorts } from './store/disk-room.js';

export function diskAlarm(gate: IngestGate, logger: Logger, directory: string): DiskRoomPorts {
  return {
    onFull: (reason) => {
      logger.error({ reason }, `the disk of ${directory} is full: ingest is paused until there is room`);
      gate.close(
        'disk',
        `ingest is paused: the disk of ${directory} is full; it goes on by itself when there is room`,
      );
    },
    onRoom: () => {
      logger.info(`there is room on the disk of ${directory} again`);
      gate.open('disk');
    },
  };
}
