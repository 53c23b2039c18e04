# SPDX-License-Identifier: Apache-2.0
# embed_sql(OUTPUT file.h NAME symbol SOURCE file.sql): makes a header with the text of
# an SQL file as `static const char symbol[]`, again whenever the SQL changes. So the SQL
# stays in a file that people can read and run.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${SOURCE}" text)
  # Leaves out empty lines and lines that contain only a comment.
  string(REGEX REPLACE "(^|\n)[ \t]*--[^\n]*" "\\1" text "${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\t" " " text "${text}")
  string(REPLACE "\n" "\\n\"\n\t\"" text "${text}")
  get_filename_component(file "${SOURCE}" NAME)
  file(WRITE "${OUTPUT}" "/* Made from ${file}. */\nstatic const char ${NAME}[] =\n\t\"${text}\";\n")
  return()
endif()

set(EMBED_SQL_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(embed_sql)
  cmake_parse_arguments(SQL "" "OUTPUT;NAME;SOURCE" "" ${ARGN})
  add_custom_command(
    OUTPUT ${SQL_OUTPUT}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${SQL_SOURCE} -DOUTPUT=${SQL_OUTPUT} -DNAME=${SQL_NAME} -P ${EMBED_SQL_SCRIPT}
    DEPENDS ${SQL_SOURCE} ${EMBED_SQL_SCRIPT}
    COMMENT "Embedding ${SQL_NAME}"
    VERBATIM)
endfunction()
