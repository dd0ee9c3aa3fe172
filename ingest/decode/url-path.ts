/**
 * The path of a request URL, of whatever shape: logs hold URLs as clients sent them, and none makes this
 * throw.
 */

const SCHEME_AND_AUTHORITY = /^(?:[A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*/;

/**
 * What is left of the URL without scheme and authority (`https://host:443`, `//host`), query and fragment. A
 * URL without them is a path already, and `https://host` has the empty one.
 */
export function pathOfUrl(url: string): string {
  const queryStart = url.search(/[?#]/);
  const withoutQuery = queryStart < 0 ? url : url.slice(0, queryStart);
  return withoutQuery.replace(SCHEME_AND_AUTHORITY, '');
}
