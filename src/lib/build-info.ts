/** Version of this build, for --version=raw, /statusz and the build-info metric. */
export interface BuildInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  /** The runtime's version, under the name that clients know. */
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
  /** The version of this program itself; commit, tree state and date above are also its own. */
  readonly productVersion: string;
}
