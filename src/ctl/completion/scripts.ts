import { UsageError } from '../../cli/usage-error.ts';
import { closest } from '../../lib/closest.ts';
import { quote } from '../../lib/go-quote.ts';

/** Each script passes the words up to the cursor to `kube-proxyctl __complete`. */
const scripts = {
  bash: `# Completion of kube-proxyctl for bash. Use: source <(kube-proxyctl completion bash)
_kube_proxyctl() {
  # COMP_WORDS is no use: bash splits words at ":" and "=".
  local line="\${COMP_LINE:0:COMP_POINT}" current cut breaks='' candidate
  local -a words candidates
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=('')
  current="\${words[-1]}"
  mapfile -t candidates < <("$1" __complete "\${words[@]:1}" 2> /dev/null)
  COMPREPLY=()
  if [[ "\${candidates[0]}" == ':files' ]]; then
    compopt -o filenames
    [[ "$current" == -*=* ]] && current="\${current#*=}"
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  # Bash replaces only what follows the last of these.
  [[ "$COMP_WORDBREAKS" == *:* ]] && breaks+=':'
  [[ "$COMP_WORDBREAKS" == *=* ]] && breaks+='='
  [[ -n "$breaks" ]] && cut="\${current%"\${current##*[$breaks]}"}"
  for candidate in "\${candidates[@]}"; do
    candidate="\${candidate%%$'\\t'*}"
    COMPREPLY+=("\${candidate#"$cut"}")
  done
}
complete -F _kube_proxyctl kube-proxyctl
`,
  zsh: `#compdef kube-proxyctl
# Completion of kube-proxyctl for zsh. Use: source <(kube-proxyctl completion zsh), after compinit;
# or write it to a file _kube-proxyctl in a directory of $fpath.
_kube_proxyctl() {
  local line
  local -a lines candidates
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}")
  if [[ "\${lines[1]}" == ':files' ]]; then
    compset -P '-*='
    _files
    return
  fi
  for line in $lines; do
    # A colon in a word is escaped; one without a backslash begins the description.
    candidates+=("\${\${\${line}//:/\\\\:}/$'\\t'/:}")
  done
  (( \${#candidates} )) && _describe 'kube-proxyctl' candidates
}
if [[ "\${funcstack[1]}" == _kube?proxyctl ]]; then
  _kube_proxyctl "$@"
else
  compdef _kube_proxyctl kube-proxyctl
fi
`,
  fish: `# Completion of kube-proxyctl for fish. Use: kube-proxyctl completion fish | source
function __kube_proxyctl_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l candidates ($words[1] __complete $words[2..-1] "$current" 2> /dev/null)
    if test "$candidates[1]" = ':files'
        set -l flag (string match -r -- '^-.*?=' "$current")
        for file in (__fish_complete_path (string replace -r -- '^-.*?=' '' "$current"))
            echo "$flag$file"
        end
    else
        printf '%s\\n' $candidates
    end
end
complete -c kube-proxyctl -f -a '(__kube_proxyctl_candidates)'
`,
} as const;

export const shells = Object.keys(scripts) as readonly (keyof typeof scripts)[];

/** Throws when there is no script for this shell. */
export function completionScript(name: string): string {
  const shell = shells.find((known) => known === name);
  if (shell) return scripts[shell];
  throw new UsageError(`unknown shell ${quote(name)}: there are ${shells.join(', ')}`, {
    suggestion: closest(name, shells),
  });
}
