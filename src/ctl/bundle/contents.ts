import type { API_VERSION } from '../../inspect/api.ts';

/** The file of an archive that lists the others. */
export const CONTENTS = 'contents.json';

/** What an archive has, and what could not be collected. */
export interface BundleContents {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'Bundle';
  readonly time: string;
  /** The kube-proxyctl that wrote it. */
  readonly client: string;
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
  readonly missing: readonly { readonly name: string; readonly reason: string }[];
}
