/**
 * For backups: `POST /api/snapshot` makes hard links to the files of the store, as one commit left them, in the data
 * directory's folder `snapshot`, and answers which they are and how many bytes of each count;
 * `DELETE /api/snapshot?id=…` removes them. Takes a query key that is not limited to projects, and no body.
 */

import { CallParameters, filledText } from '../endpoints/call-parameters.js';
import type { Snapshot } from '../store/directory/backup.js';
import { DiskFullError } from '../store/disk/disk-room.js';
import { errorText, isSystemError } from '../store/disk/system-errors.js';
import type { Page } from './api.js';
import { invalidArgument, jsonAnswer, permissionDenied, unavailable } from './errors.js';
import { decodeQuery } from './query/query-string.js';
import type { HttpAnswer, HttpRequest } from './server/server.js';

export const SNAPSHOT_PATH = '/api/snapshot';

const RETRY_SECONDS = 60;

export const releaseCall = new CallParameters(
  { id: filledText.meta({ description: 'The `id` that the snapshot was made with.' }) },
  (given) => given,
);

export interface SnapshotPort {
  /** Rejects with what the system says. */
  snapshot(): Promise<Snapshot>;
  releaseSnapshot(id: string): Promise<void>;
}

export function snapshotPage(port: SnapshotPort): Page {
  return {
    needsKey: true,
    methods: 'POST, DELETE',
    answer: (request, _nowUs, grant) => {
      if (grant!.projects !== null)
        return permissionDenied('this key is limited to some projects, and a snapshot is of all of them');
      return request.method === 'POST' ? port.snapshot().then(jsonAnswer, refused) : release(port, request);
    },
  };
}

async function release(port: SnapshotPort, { rawQuery }: HttpRequest): Promise<HttpAnswer> {
  const parsed = releaseCall.parse(decodeQuery(rawQuery));
  if (!parsed.ok) return invalidArgument(parsed.problems);
  await port.releaseSnapshot(parsed.parameters.id);
  return jsonAnswer({});
}

/** The service goes on. */
function refused(error: unknown): HttpAnswer {
  if (!isSystemError(error) && !(error instanceof DiskFullError)) throw error;
  return unavailable(`no snapshot could be made: ${errorText(error)}`, RETRY_SECONDS);
}
