/** Who sends the generated requests: user agents, places and networks, rendered once for many requests. */

import type { Random } from './random.js';

const USER_AGENTS = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0.0.0 Safari/537.36',
  'Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.6367.82 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/123.0.0.0 Safari/537.36 Edg/123.0.2420.97',
  'Dart/3.3 (dart:io)',
  'node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
  'python-httpx/0.27.0',
  'okhttp/4.12.0',
] as const;

const PLACES = [
  'Hamburg|HAM|EU|DE|Hamburg|HH|Europe/Berlin|53.55|9.99',
  'Lyon|CDG|EU|FR|Auvergne-Rhône-Alpes|ARA|Europe/Paris|45.76|4.83',
  'Kraków|WAW|EU|PL|Lesser Poland|12|Europe/Warsaw|50.06|19.94',
  'Leeds|MAN|EU|GB|England|ENG|Europe/London|53.79|-1.54',
  'Columbus|CMH|NA|US|Ohio|OH|America/New_York|39.96|-82.99',
  'Austin|DFW|NA|US|Texas|TX|America/Chicago|30.26|-97.74',
  'Oakland|SJC|NA|US|California|CA|America/Los_Angeles|37.80|-122.27',
  'Curitiba|GRU|SA|BR|Paraná|PR|America/Sao_Paulo|-25.42|-49.27',
  'Pune|BOM|AS|IN|Maharashtra|MH|Asia/Kolkata|18.52|73.85',
  'Bandung|CGK|AS|ID|West Java|JB|Asia/Jakarta|-6.91|107.60',
  'Osaka|KIX|AS|JP|Osaka|27|Asia/Tokyo|34.69|135.50',
  'Perth|PER|OC|AU|Western Australia|WA|Australia/Perth|-31.95|115.86',
  'Nairobi|NBO|AF|KE|Nairobi County|30|Africa/Nairobi|-1.28|36.81',
].map((row) => row.split('|'));

const NETWORKS = [
  [3320, 'Telekom Nord'],
  [12_322, 'Fibre du Sud'],
  [7922, 'Cable and Sons'],
  [16_509, 'Rented Machines Inc.'],
  [55_836, 'Mobile of India'],
  [2516, 'Osaka Optical'],
  [1221, 'Outback Net'],
  [36_914, 'Savanna Broadband'],
] as const;

export interface Client {
  readonly ip: string;
  readonly country: string;
  readonly colo: string;
  readonly userAgent: string;
  /** The fields of `request.cf` up to `tlsExportedAuthenticator`, JSON members without braces. */
  readonly cfMembers: string;
}

export function createClient(random: Random): Client {
  const [city, colo, continent, country, region, regionCode, timezone, ...position] = random.pick(PLACES);
  const [asn, organization] = random.pick(NETWORKS);
  const score = random.between(1, 99);
  const [latitude, longitude] = position.map((degrees) => (Number(degrees) + random.float() / 10).toFixed(5));
  const http = random.pick(['HTTP/3', 'HTTP/2', 'HTTP/2', 'HTTP/1.1']);
  const euMember = continent === 'EU' && country !== 'GB' ? '"isEUCountry":"1",' : '';
  const cfMembers =
    `"asOrganization":"${organization}","asn":${asn},"botManagement":{"corporateProxy":false,` +
    `"ja3Hash":"${random.hex(32)}","score":${score},"staticResource":${random.chance(0.1)},"verifiedBot":false},` +
    `"city":"${city}","clientAcceptEncoding":"gzip, deflate, br","clientTrustScore":${score},` +
    `"colo":"${colo}","continent":"${continent}","country":"${country}",` +
    `"edgeRequestKeepAliveStatus":${random.below(2)},"httpProtocol":"${http}",${euMember}` +
    `"latitude":"${latitude}","longitude":"${longitude}","postalCode":"${random.between(10_000, 99_999)}",` +
    `"region":"${region}","regionCode":"${regionCode}","timezone":"${timezone}",` +
    `"tlsCipher":"AEAD-AES128-GCM-SHA256","tlsClientAuth":{"certPresented":"0","certRevoked":"0",` +
    `"certVerified":"NONE"}`;
  const ip = `${random.between(11, 223)}.${random.below(256)}.${random.below(256)}.${random.below(256)}`;
  return { ip, country, colo, userAgent: random.pick(USER_AGENTS), cfMembers };
}
