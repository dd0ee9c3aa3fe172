/**
 * The request lines of the generated edge logs: method, path, query string and status for each area of the
 * API.
 */

import type { Random } from './random.js';

export interface RequestLine {
  readonly method: string;
  /** Needs no JSON escaping; nor does `search`. */
  readonly path: string;
  /** Empty, or from the question mark on. */
  readonly search: string;
  readonly status: number;
}

const TABLES = ['profiles', 'orders', 'messages', 'products', 'sessions', 'invoices', 'events', 'todos'];
const BUCKETS = ['avatars', 'uploads', 'public-assets', 'receipts'];
const AUTH_PATHS = ['token', 'user', 'signup', 'logout', 'recover', 'otp', 'verify', 'settings'];
const CALLED_FUNCTIONS = ['heartbeat', 'checkout', 'send-mail', 'resize', 'webhook', 'search'];
const ODD_PATHS = [
  '/',
  '/favicon.ico',
  '/robots.txt',
  '/pg/query',
  '/graphql/v1',
  '/rest/v1/rpc/auth/realtime',
];

/** `otherRef` is the reference of some project, for query strings that point elsewhere. */
export function drawRequest(random: Random, queryStringShare: number, otherRef: string): RequestLine {
  const kind = random.float();
  const withQuery = random.chance(queryStringShare);
  if (kind < 0.48) return restRequest(random, withQuery);
  if (kind < 0.68) return authRequest(random, withQuery, otherRef);
  if (kind < 0.83) return storageRequest(random, withQuery);
  if (kind < 0.9) return realtimeRequest(random, withQuery);
  if (kind < 0.98) return functionRequest(random, withQuery, otherRef);
  return { method: 'GET', path: random.pick(ODD_PATHS), search: '', status: 404 };
}

function drawStatus(random: Random, success: number): number {
  if (random.chance(0.92)) return success;
  return random.pick([304, 301, 400, 401, 401, 403, 404, 404, 406, 409, 416, 422, 429, 500, 502, 503, 504]);
}

function restRequest(random: Random, withQuery: boolean): RequestLine {
  const table = random.pick(TABLES);
  const method = random.pick(['GET', 'GET', 'GET', 'GET', 'POST', 'PATCH', 'DELETE']);
  let search = '';
  if (withQuery) {
    const filter = random.chance(0.6)
      ? `&id=eq.${random.uuid()}`
      : `&limit=${random.pick([1, 10, 20, 50, 100])}`;
    search = `?select=*${filter}${random.chance(0.3) ? '&order=created_at.desc' : ''}`;
  }
  const success = method === 'GET' ? 200 : method === 'POST' ? 201 : 204;
  return { method, path: `/rest/v1/${table}`, search, status: drawStatus(random, success) };
}

function authRequest(random: Random, withQuery: boolean, otherRef: string): RequestLine {
  const action = random.pick(AUTH_PATHS);
  let search = '';
  if (withQuery) {
    if (random.chance(0.15))
      search = `?redirect_to=https%3A%2F%2F${otherRef}.supabase.co%2Fauth%2Fv1%2Fcallback`;
    else if (random.chance(0.1)) search = `?redirect_to=https://${otherRef}.supabase.co/storage/v1`;
    else search = action === 'token' ? '?grant_type=refresh_token' : `?nonce=${random.hex(32)}`;
  }
  const method = action === 'user' || action === 'settings' ? 'GET' : 'POST';
  return { method, path: `/auth/v1/${action}`, search, status: drawStatus(random, 200) };
}

function storageRequest(random: Random, withQuery: boolean): RequestLine {
  const upload = random.chance(0.15);
  const visibility = random.chance(0.7) ? 'public/' : '';
  const path = `/storage/v1/object/${visibility}${random.pick(BUCKETS)}/${random.uuid()}.webp`;
  const search = withQuery
    ? `?width=${random.pick([64, 256, 640, 1920])}&quality=${random.pick([75, 85])}`
    : '';
  return { method: upload ? 'POST' : 'GET', path, search, status: drawStatus(random, 200) };
}

function realtimeRequest(random: Random, withQuery: boolean): RequestLine {
  const search = withQuery ? `?apikey=${random.hex(40)}&vsn=1.0.0` : '';
  return { method: 'GET', path: '/realtime/v1/websocket', search, status: drawStatus(random, 101) };
}

function functionRequest(random: Random, withQuery: boolean, otherRef: string): RequestLine {
  const path = `/functions/v1/${random.pick(CALLED_FUNCTIONS)}`;
  const search = withQuery ? `?source=${otherRef}&time=${random.between(1_700_000_000, 1_799_999_999)}` : '';
  return { method: 'POST', path, search, status: drawStatus(random, 200) };
}
