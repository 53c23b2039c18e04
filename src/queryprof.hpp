/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof for C++17: labels, spans and traces as objects. Everything is inline and calls queryprof.h.
 */
#ifndef QUERYPROF_HPP
#define QUERYPROF_HPP

#include "queryprof.h"

#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace queryprof
{

/* A set of labels, usually of one label. Make one for each query, and do all work for the query
 * inside apply(), on any thread and on several at the same time. The object must exist until the
 * last apply() has begun; calls that are running may outlive it. If memory runs out, there are no
 * labels. */
class DynamicLabel
{
      public:
	DynamicLabel(const std::string &key, const std::string &text)
	{
		const qp_label label = { key.c_str(), text.c_str(), 0, nullptr };
		set_ = qp_labels_new(&label, 1);
	}
	template <typename Number, typename = std::enable_if_t<std::is_integral<Number>::value>>
	DynamicLabel(const std::string &key, Number number, const char *unit = nullptr)
	{
		const qp_label label = { key.c_str(), nullptr, static_cast<int64_t>(number), unit };
		set_ = qp_labels_new(&label, 1);
	}
	DynamicLabel(std::initializer_list<qp_label> labels)
	    : set_(qp_labels_new(labels.begin(), labels.size()))
	{
	}
	~DynamicLabel()
	{
		qp_labels_free(set_);
	}
	DynamicLabel(DynamicLabel &&other) noexcept : set_(std::exchange(other.set_, nullptr))
	{
	}
	DynamicLabel &operator=(DynamicLabel &&other) noexcept
	{
		std::swap(set_, other.set_);
		return *this;
	}
	DynamicLabel(const DynamicLabel &) = delete;
	DynamicLabel &operator=(const DynamicLabel &) = delete;

	const qp_label_set *get() const noexcept
	{
		return set_;
	}

	/* Calls the function; it, and everything that it calls, has the labels. Returns its result,
	 * which may be a reference; its exceptions pass through. */
	template <typename Function> std::invoke_result_t<Function> apply(Function &&function) const
	{
		using result = std::invoke_result_t<Function>;
		using held = std::conditional_t<std::is_reference<result>::value,
		                                std::remove_reference_t<result> *, result>;
		if constexpr (std::is_void<result>::value) {
			auto call = [&] { std::invoke(std::forward<Function>(function)); };
			run(call);
		} else if constexpr (std::is_reference<result>::value) {
			held to = nullptr;
			auto call = [&] {
				auto &&got = std::invoke(std::forward<Function>(function));
				to = std::addressof(got);
			};
			run(call);
			return static_cast<result>(*to);
		} else {
			slot<result> to;
			auto call = [&] {
				::new (static_cast<void *>(&to.value))
					result(std::invoke(std::forward<Function>(function)));
				to.is_there = true;
			};
			run(call);
			return std::move(to.value);
		}
	}

      private:
	template <typename Value> struct slot {
		slot()
		{
		}
		~slot()
		{
			if (is_there)
				value.~Value();
		}
		union {
			Value value;
		};
		bool is_there = false;
	};

	template <typename Call> void run(Call &call) const
	{
		qp_labels_run(
			set_, [](void *to) { (*static_cast<Call *>(to))(); }, std::addressof(call));
	}

	qp_label_set *set_ = nullptr;
};

/* The thread has the labels while the object exists: for code that cannot be a separate
 * function. */
class LabelScope
{
      public:
	explicit LabelScope(const DynamicLabel &label) noexcept : before_(qp_labels_enter(label.get()))
	{
	}
	~LabelScope()
	{
		qp_labels_leave(before_);
	}
	LabelScope(const LabelScope &) = delete;
	LabelScope &operator=(const LabelScope &) = delete;

      private:
	uint64_t before_;
};

/* A task for another thread. It calls `function` with the context of the thread that made the task:
 * the labels that it had entered, its query with a handle, and its running span. */
template <typename Function> auto with_context(Function &&function)
{
	return [context = qp_context_get(),
	        function = std::forward<Function>(function)](auto &&...arguments) mutable -> decltype(auto) {
		struct restore {
			qp_context before;
			~restore()
			{
				qp_context_set(before);
			}
		} restore = { qp_context_set(context) };
		return std::invoke(function, std::forward<decltype(arguments)>(arguments)...);
	};
}

/* --- spans ---------------------------------------------------------------------------------
 *
 *	void parse()
 *	{
 *		static qp_span_site site = QP_SPAN_SITE("parse");
 *		queryprof::span span(site);
 *		...
 *	}
 *
 * QP_SPAN("parse") does the same. A span ends with its scope, also by an exception. */

/* A span that is the running span of its thread until the end of the scope. */
class span
{
      public:
	explicit span(qp_span_site &site) noexcept : span_(qp_span_begin(&site))
	{
	}
	~span()
	{
		qp_span_end(span_);
	}
	span(const span &) = delete;
	span &operator=(const span &) = delete;

	void attribute(const char *key, const char *value) noexcept
	{
		qp_span_attr(span_, key, value);
	}
	void attribute(const char *key, const std::string &value) noexcept
	{
		qp_span_attr(span_, key, value.c_str());
	}
	void attribute(const char *key, int64_t value) noexcept
	{
		qp_span_attr_number(span_, key, value);
	}
	void event(const char *name) noexcept
	{
		qp_span_event(span_, name);
	}
	void status(qp_span_status status) noexcept
	{
		qp_span_set_status(span_, status);
	}

	qp_span get() const noexcept
	{
		return span_;
	}

      private:
	qp_span span_;
};

/* The thread's part of a trace, until the end of the scope: of a new trace, or of another thread's.
 * If queryprof is not running, or memory runs out, there is none; code() returns the reason. */
class trace
{
      public:
	explicit trace(const char *traceparent = nullptr) noexcept : code_(qp_trace_begin(traceparent))
	{
	}
	explicit trace(qp_span_handle parent) noexcept : code_(qp_span_join(parent))
	{
	}
	explicit trace(const std::vector<qp_span_handle> &parents) noexcept
	    : code_(qp_span_follow(parents.data(), parents.size()))
	{
	}
	~trace()
	{
		if (code_ == QP_OK)
			qp_trace_end();
	}
	trace(const trace &) = delete;
	trace &operator=(const trace &) = delete;

	int code() const noexcept
	{
		return code_;
	}

      private:
	int code_;
};

} // namespace queryprof

#endif
