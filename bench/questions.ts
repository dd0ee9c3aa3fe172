/** What a fleet of dashboards asks about some projects, by endpoint. */
export function questionsAbout(projects: readonly string[]): Record<string, string[]> {
  const path = (endpoint: string, parameters: Record<string, string>) =>
    `/api/endpoints/query/${endpoint}?${new URLSearchParams(parameters)}`;
  return {
    'logs.all': projects.map((project) => path('logs.all', { project, project_tier: 'ENTERPRISE' })),
    'functions.invocation-stats': projects.flatMap((project) =>
      ['5min', '15min', '1hr', '1day', '7day'].map((interval) =>
        path('functions.invocation-stats', { project, interval }),
      ),
    ),
    'usage.api-counts': projects.flatMap((project) =>
      ['hourly', 'daily', 'minutely'].map((interval) => path('usage.api-counts', { project, interval })),
    ),
  };
}
