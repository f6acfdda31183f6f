/** How the user calls the program. */
export type ProgramName = 'kube-proxyctl' | 'kubectl kube_proxy';

/** The first argument when kubectl runs it as a plugin (bin/kubectl-kube_proxy). */
export const PLUGIN = '__plugin';
