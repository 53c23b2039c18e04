/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instrumentation library that defines the variable for readers of OpenTelemetry's context.
 */
__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;

__attribute__((visibility("default"))) void **variable(void);
void **variable(void)
{
	return &otel_thread_ctx_v1;
}
