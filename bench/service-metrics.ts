/** What a service under test says about itself at /metrics. */

export interface ServiceMetrics {
  /** Summed over the series of a name whose labels contain these texts. */
  sum(name: string, ...labels: string[]): number;
  /** The values of a label of a metric. */
  labels(name: string, label: string): readonly string[];
}

export async function readMetrics({ url }: { readonly url: string }): Promise<ServiceMetrics> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
  return {
    labels: (name, label) =>
      lines.flatMap((line) => {
        const value = new RegExp(`^${name}\\{(?:.*,)?${label}="([^"]*)"`).exec(line);
        return value === null ? [] : [value[1]];
      }),
    sum: (name, ...labels) =>
      lines
        .filter(
          (line) =>
            line.startsWith(name) &&
            /^[ {]/.test(line.slice(name.length)) &&
            labels.every((label) => line.includes(label)),
        )
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0),
  };
}
