import type { RotatedFile } from './rotated-file.ts';

/** What a request proves its sender with. */
export interface Credential {
  readonly token?: string;
  /** PEM; takes the place of a certificate from files. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

/** Where credentials come from. */
export interface Credentials {
  /** What to use now. Rejects when there is nothing to use; the message never holds a secret. */
  current(): Promise<Credential>;
  /** Told that the server answered 401 to `used`; true when asking again may give something better. */
  refused(used: Credential): boolean;
}

export function fixedCredentials(credential: Credential): Credentials {
  return { current: () => Promise.resolve(credential), refused: () => false };
}

export function tokenFileCredentials(file: RotatedFile): Credentials {
  return {
    async current() {
      const token = (await file.read()).trim();
      if (token === '') throw new Error(`read empty token from file "${file.path}"`);
      return { token };
    },
    // The file is read for every request, so a rotated token is picked up by the next one anyway.
    refused: () => false,
  };
}
