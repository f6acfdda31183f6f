import { KUBERNETES_VERSION } from '../cli/version.ts';
import type { ProductReport } from '../inspect/api.ts';
import { product, productText } from '../lib/product.ts';
import { messageOf } from '../lib/thrown.ts';
import type { ReportSource } from './source.ts';

/** One of the two programs. */
interface ProgramVersion {
  /** The Kubernetes release that it stands in for. */
  readonly kubernetes: string;
  /** Absent when the program is of a version that does not say it. */
  readonly product?: ProductReport;
}

export interface VersionReport {
  readonly client: ProgramVersion;
  /** The proxy that runs, or why it could not be asked. */
  readonly server: (ProgramVersion & { readonly nodeName: string }) | { readonly error: string };
}

/** What kube-proxyctl is. */
export function clientVersion(): ProgramVersion {
  const { version, commit, treeState } = product;
  return { kubernetes: KUBERNETES_VERSION, product: { version, commit, treeState } };
}

/** Resolves also when the proxy does not answer. */
export async function versionReport(source: Pick<ReportSource, 'status'>): Promise<VersionReport> {
  const client = clientVersion();
  try {
    const { version, product, nodeName } = await source.status();
    return { client, server: { kubernetes: version, nodeName, ...(product && { product }) } };
  } catch (error) {
    return { client, server: { error: messageOf(error) } };
  }
}

export function versionText({ client, server }: VersionReport): string {
  const proxy = 'error' in server ? server.error : `${programText(server)}, on node ${server.nodeName}`;
  return `kube-proxyctl: ${programText(client)}\nkube-proxy:    ${proxy}\n`;
}

/** `kube-proxy-ts 0.1.0, commit 5838ac0f2b1e, for Kubernetes v1.37.0`. */
export function programText({ kubernetes, product }: ProgramVersion): string {
  return `${product ? productText(product) : 'an earlier kube-proxy-ts'}, for Kubernetes ${kubernetes}`;
}
