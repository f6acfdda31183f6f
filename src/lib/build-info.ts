/** What this build says about itself on --version=raw, /statusz and the build-info metric. */
export interface BuildInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  /** The language runtime; the name is the one clients of these pages know. */
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}
