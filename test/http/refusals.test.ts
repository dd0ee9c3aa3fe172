/** What cannot be read is refused with its reason, on every path, and is no bug of ours. */

import { expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { containedHandler } from '../../src/http/server/contained-handler.js';
import { HeaderList } from '../../src/http/server/headers.js';
import { BugLog } from './service.js';

test('damage is DATA_LOSS and a lack of descriptors 503, thrown or rejected; anything else is a bug', async () => {
  const bugs = new BugLog();
  const answerTo = async (error: Error, isLate: boolean): Promise<string> => {
    const open = () => {
      if (isLate) return Promise.reject(error);
      throw error;
    };
    const request = { method: 'GET', path: '/x', rawQuery: '', headers: new HeaderList() };
    const { status, body } = (await containedHandler({ open }, bugs).open(request)) as {
      readonly status: number;
      readonly body: string;
    };
    return `${status} ${JSON.parse(body).error.status}`;
  };
  for (const isLate of [false, true]) {
    expect(await answerTo(new SegmentError('rotten'), isLate)).toBe('500 DATA_LOSS');
    expect(await answerTo(new Error("EMFILE: too many open files, open 'a'"), isLate)).toBe(
      '503 UNAVAILABLE',
    );
  }
  expect(bugs.bugs).toEqual([]);
  expect(await answerTo(new Error('oops'), false)).toBe('500 INTERNAL');
  expect(bugs.bugs).toEqual(['GET /x: oops']);
});
