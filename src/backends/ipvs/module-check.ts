import { isAtLeast, parseKernelRelease } from '../../kernel/probe.ts';
import type { RunProgram } from '../../kernel/program.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { messageOf } from '../../lib/thrown.ts';

/** What the check reads and runs. */
export interface ModuleContext {
  readonly files: Pick<SystemFiles, 'read'>;
  readonly run: RunProgram;
}

/** The obstacles to ipvs mode that the node itself shows. */
export interface ModuleReport {
  /** The output of `uname -r`; undefined when it cannot be read. */
  readonly release: string | undefined;
  /** Modules that are neither built in, nor loaded, nor could be loaded. */
  readonly missing: readonly string[];
  /** What `modprobe` said of the first of them; empty when it said nothing. */
  readonly words: string;
}

const osRelease = '/proc/sys/kernel/osrelease';
const loadedModules = '/proc/modules';
/** There as long as connections are tracked, whatever that was built as. */
const conntrackSetting = '/proc/sys/net/netfilter/nf_conntrack_max';
const modprobeTimeoutMs = 10_000;
/** From this version on conntrack is one module for both families. */
const commonConntrackKernel = { major: 4, minor: 19 };

/** The modules that a scheduler needs on a kernel of this release. */
export function wantedModules(release: string, scheduler: string): string[] {
  const version = parseKernelRelease(release);
  const isOld = version !== undefined && !isAtLeast(version, commonConntrackKernel);
  const conntrack = isOld ? 'nf_conntrack_ipv4' : 'nf_conntrack';
  return [...new Set(['ip_vs', 'ip_vs_rr', 'ip_vs_wrr', 'ip_vs_sh', `ip_vs_${scheduler}`, conntrack])];
}

/**
 * Looks for the modules of IPVS, and has those loaded that are not there. Nothing depends on the outcome: whether the
 * kernel can do what is asked is found out by asking it; this explains a failure.
 */
export async function checkModules(context: ModuleContext, scheduler: string): Promise<ModuleReport> {
  const { files } = context;
  const release = tryRead(files, osRelease)?.trim();
  const wanted = wantedModules(release ?? '', scheduler);
  const loaded = tryRead(files, loadedModules);
  const isThere = (module: string) => {
    if (module.startsWith('nf_conntrack') && tryRead(files, conntrackSetting) !== undefined) return true;
    if (loaded === undefined) return isConfigured(files, release, module);
    return isLoaded(loaded, module) || isBuiltIn(files, release, module);
  };
  const absent = wanted.filter((module) => !isThere(module));
  const missing: string[] = [];
  let words = '';
  for (const module of absent) {
    const refusal = await load(context.run, module);
    if (refusal === undefined) continue;
    missing.push(module);
    words ||= refusal;
  }
  return { release, missing, words };
}

/** One sentence that says what is missing and what to do; empty when nothing is. */
export function explainModules({ release, missing, words }: ModuleReport): string {
  if (missing.length === 0) return '';
  const kernel = release === undefined ? 'of this kernel' : `of kernel ${release}`;
  const said = words === '' ? '' : ` (${words})`;
  return (
    `missing modules ${kernel}: ${missing.join(', ')}${said}; ` +
    `load them on the node with "modprobe -a ${missing.join(' ')}", or install the package that has them`
  );
}

/** First field of a line, such as `ip_vs 184320 6 ip_vs_rr, Live 0x0`. */
function isLoaded(modules: string, name: string): boolean {
  return modules.split('\n').some((line) => line.trim().split(/\s+/, 1)[0] === name);
}

/** Lines are paths, such as `kernel/net/netfilter/ipvs/ip_vs.ko`. */
function isBuiltIn(files: ModuleContext['files'], release: string | undefined, name: string): boolean {
  const text = release === undefined ? undefined : tryRead(files, `/lib/modules/${release}/modules.builtin`);
  return text?.split('\n').some((line) => line.trim().split('/').at(-1) === `${name}.ko`) ?? false;
}

/** A kernel without modules has no list of them; its configuration says what is built in. */
function isConfigured(files: ModuleContext['files'], release: string | undefined, name: string): boolean {
  const text = release === undefined ? undefined : tryRead(files, `/boot/config-${release}`);
  return text?.split('\n').some((line) => line.trim() === `CONFIG_${name.toUpperCase()}=y`) ?? false;
}

/** Undefined when the module was loaded, else why not. */
async function load(run: RunProgram, module: string): Promise<string | undefined> {
  try {
    const { status, output } = await run('modprobe', ['--', module], { timeoutMs: modprobeTimeoutMs });
    return status === 0 ? undefined : (output.trim().split('\n', 1)[0] ?? '');
  } catch (error) {
    return messageOf(error);
  }
}

function tryRead(files: ModuleContext['files'], path: string): string | undefined {
  try {
    return files.read(path);
  } catch {
    return undefined;
  }
}
