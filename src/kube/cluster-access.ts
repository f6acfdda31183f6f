import type { Credentials } from './credentials.ts';

/** PEM text given directly, or in a file that may be replaced while we run. */
export type PemSource = { readonly text: string } | { readonly file: string };

/** How to reach one API server, and as whom. */
export interface ClusterAccess {
  /** Base URL; may have a path. */
  readonly server: URL;
  /** The server as metrics name it, when not by the host of its URL, which lacks a port that is the scheme's own. */
  readonly authority?: string;
  readonly ca?: PemSource;
  readonly clientCert?: PemSource;
  readonly clientKey?: PemSource;
  /** The name the server's certificate must have, when it is not the host of its URL. */
  readonly serverName?: string;
  readonly skipVerify: boolean;
  readonly proxy?: URL;
  readonly disableCompression: boolean;
  readonly credentials: Credentials;
  /** Impersonation headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** Configuration from which no access can be made. Names file, field and value; never a secret. */
export class AccessError extends Error {
  readonly code = 'KPT_ACCESS_INVALID';
  override readonly name = 'AccessError';
}

/** Reads an http or https URL; `what` says where it was found. */
export function urlOf(text: string, what: string): URL {
  const url = URL.parse(text);
  // The parser takes the path for the host where there is none.
  if (url === null || authorityOf(text) === undefined)
    throw new AccessError(`${what}: want a URL, got "${redact(text)}"`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new AccessError(
      `${what}: scheme "${url.protocol.slice(0, -1)}" is not supported; use http or https`,
    );
  }
  return url;
}

/** Host and port of a URL as written; without the user, who may have a password. */
export function authorityOf(text: string): string | undefined {
  return /^\s*[^:/]+:\/\/(?:[^/\\?#]*@)?([^/\\?#\s]+)/.exec(text)?.[1];
}

/** A URL may carry a password. */
function redact(text: string): string {
  return text.replace(/\/\/[^/@]*@/, '//…@');
}
