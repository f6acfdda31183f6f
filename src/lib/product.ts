import { readFileSync } from 'node:fs';

/** This program itself, as opposed to the Kubernetes release that it stands in for. */
export interface Product {
  /** Of package.json. */
  readonly version: string;
  /** The git commit of the sources; `unknown` without git, or when the program runs from its sources. */
  readonly commit: string;
  /** `dirty`: the sources had changes that were not committed. */
  readonly treeState: 'clean' | 'dirty' | 'unknown';
  /** When the commit was made; `unknown` without one. */
  readonly date: string;
}

/** Defined by scripts/build.ts. */
declare const KPT_PRODUCT: Product;

export const product: Product = typeof KPT_PRODUCT === 'undefined' ? fromSources() : KPT_PRODUCT;

/** `kube-proxy-ts 0.1.0, commit 5838ac0f2b1e`, with `+dirty` behind a commit that is not all; or `unknown commit`. */
export function productText({ version, commit, treeState }: Omit<Product, 'date'>): string {
  const dirty = treeState === 'dirty' ? '+dirty' : '';
  const source = commit === 'unknown' ? 'unknown commit' : `commit ${commit.slice(0, 12)}${dirty}`;
  return `kube-proxy-ts ${version}, ${source}`;
}

function fromSources(): Product {
  return { version: packageVersion(), commit: 'unknown', treeState: 'unknown', date: 'unknown' };
}

/** `unknown` where the sources were copied without package.json. */
function packageVersion(): string {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    return String((JSON.parse(text) as { version?: unknown }).version);
  } catch {
    return 'unknown';
  }
}
