/** Wraps the rules of a Prometheus rule file in an object for the Prometheus Operator. */
export function prometheusRule(ruleFile: string): string {
  const rules = ruleFile.slice(ruleFile.indexOf('groups:')).replace(/^(?=.)/gm, '  ');
  return `# The rules of prometheus-rules.yaml for the Prometheus Operator. Do not edit: npm run docs makes this file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kube-proxy
  namespace: kube-system
  labels:
    k8s-app: kube-proxy
spec:
${rules}`;
}
