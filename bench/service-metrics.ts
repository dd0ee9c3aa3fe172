/** What a service under test says about itself at /metrics. */

export interface ServiceMetrics {
  /** Summed over the series of a name whose labels contain a text. */
  sum(name: string, label?: string): number;
}

export async function readMetrics({ url }: { readonly url: string }): Promise<ServiceMetrics> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
  return {
    sum: (name, label = '') =>
      lines
        .filter(
          (line) => line.startsWith(name) && /^[ {]/.test(line.slice(name.length)) && line.includes(label),
        )
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0),
  };
}
