import type { Credentials } from './credentials.ts';

/** PEM text, or a file that holds it and may be replaced at run time. */
export type PemSource = { readonly text: string } | { readonly file: string };

/** How to reach and authenticate to one API server. */
export interface ClusterAccess {
  /** Base URL; may have a path. */
  readonly server: URL;
  /** The `host` label of metrics, if not the host of the URL: a parsed URL drops the scheme's default port. */
  readonly authority?: string;
  readonly ca?: PemSource;
  readonly clientCert?: PemSource;
  readonly clientKey?: PemSource;
  /** The name expected in the server's certificate, if not the host of the URL. */
  readonly serverName?: string;
  readonly skipVerify: boolean;
  readonly proxy?: URL;
  readonly disableCompression: boolean;
  readonly credentials: Credentials;
  /** Impersonation headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** Invalid access configuration. The message names file, field and value, never a secret. */
export class AccessError extends Error {
  readonly code = 'KPT_ACCESS_INVALID';
  override readonly name = 'AccessError';
}

/** Parses an http or https URL; `what` names its source in the error. */
export function urlOf(text: string, what: string): URL {
  const url = URL.parse(text);
  // Without a host, the parser takes the path for one.
  if (url === null || authorityOf(text) === undefined)
    throw new AccessError(`${what}: want a URL, got "${redact(text)}"`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new AccessError(
      `${what}: scheme "${url.protocol.slice(0, -1)}" is not supported; use http or https`,
    );
  }
  return url;
}

/** Host and port of a URL as written, without user and password. */
export function authorityOf(text: string): string | undefined {
  return /^\s*[^:/]+:\/\/(?:[^/\\?#]*@)?([^/\\?#\s]+)/.exec(text)?.[1];
}

/** Removes user and password from a URL. */
function redact(text: string): string {
  return text.replace(/\/\/[^/@]*@/, '//…@');
}
